"""A function, a script or a command as a job; what cannot be sent is told."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.jobs.validate import problems
from lockstep.sdk import BadTrainer, Trainer

AROUND = 3


def add(first: int, second: list[int]) -> None:
    import math

    print("sum", first + math.floor(second[0]))


def command(trainer: Trainer) -> list[str]:
    job = convert(trainer.job("t"), TrainingJob)
    assert problems(job) == []
    found: list[str] = job.spec.roles[0].template["spec"]["containers"][0]["command"]
    return found


def test_the_source_of_a_function_runs_by_itself() -> None:
    trainer = Trainer(func=add, func_args={"first": 1, "second": [2]}, python=sys.executable)
    done = subprocess.run(command(trainer), capture_output=True, text=True, check=True)
    assert done.stdout == "sum 3\n"


def test_a_script_gets_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text("import sys; print(sys.argv[1:])")
    trainer = Trainer(script=script, args=["--lr", "1"], python=sys.executable)
    done = subprocess.run(command(trainer), capture_output=True, text=True, check=True)
    assert done.stdout == "['--lr', '1']\n"


def test_the_job_is_as_large_as_it_says() -> None:
    trainer = Trainer(command=["run"], num_nodes=2, min_nodes=1, max_nodes=4, gpus_per_node=8)
    (role,) = convert(trainer.job(), TrainingJob).spec.roles
    assert (role.replicas, role.min, role.max) == (2, 1, 4)
    main = role.template["spec"]["containers"][0]
    assert main["resources"]["limits"] == {"nvidia.com/gpu": 8}


def closure() -> Any:
    there = AROUND

    def uses() -> None:
        print(there)

    return uses


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "func, script, command"),
    "two things": ({"func": add, "command": ["x"]}, "func, script, command"),
    "a lambda": ({"func": lambda: None}, "func"),
    "no function": ({"func": print}, "func"),
    "a closure": ({"func": closure()}, "refers to there"),
    "arguments that are missing": ({"func": add}, "func_args"),
    "arguments that JSON cannot hold": (
        {"func": add, "func_args": {"first": object(), "second": []}},
        "func_args",
    ),
    "a file that is not there": ({"script": "/no/such/file.py"}, "script"),
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_sent_is_told(words: str) -> None:
    given, told = BAD[words]
    with pytest.raises(BadTrainer, match=told):
        Trainer(**given).job()


def test_the_example_can_be_sent() -> None:
    file = Path(__file__).parents[3] / "examples" / "sdk" / "function.py"
    spec = spec_from_file_location("example", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "def work" in command(Trainer(func=module.work, func_args={"word": "x"}))[-1]
