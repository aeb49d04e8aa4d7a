"""What the options of submit make of a job: scripts, run times, arrays, parts of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.cli.build import BadFlag, training_job
from lockstep.cli.flags import Flags, Framework
from lockstep.cli.load import problems
from lockstep.cli.submit_more import More


def jobs(more: More, **flags: Any) -> list[dict[str, Any]]:
    given = Flags(framework=Framework.PLAIN, command=more.command(["true"]), name="j", **flags)
    found = more.complete(training_job(given))
    assert [problems(one) for one in found] == [[]] * len(found)
    return found


def container(job: dict[str, Any]) -> dict[str, Any]:
    return dict(job["spec"]["roles"][0]["template"]["spec"]["containers"][0])


def test_a_run_time_reaches_job_and_pods_in_seconds() -> None:
    (job,) = jobs(More(runtime="1m30s"))
    told = {"lockstep.dev/runtime": "90"}
    assert job["metadata"]["annotations"] == told
    assert job["spec"]["roles"][0]["template"]["metadata"]["annotations"] == told


@pytest.mark.parametrize(("ttl", "kept"), [("1d", "1d"), ("2h", "2h"), ("never", None)])
def test_a_job_goes_some_time_after_its_end(ttl: str, kept: str | None) -> None:
    (job,) = jobs(More(ttl=ttl))
    assert job["spec"].get("runPolicy", {}).get("timeToLive") == kept


@pytest.mark.parametrize(
    ("gpus", "limits"),
    [(2, {"nvidia.com/gpu": 2}), (0.5, {"lockstep.dev/gpu-compute": 50})],
)
def test_gpus_are_whole_or_a_part_of_one(gpus: float, limits: dict[str, int]) -> None:
    (job,) = jobs(More(gpu_type="A100"), gpus=gpus)
    shown = container(job)["resources"]["limits"]
    assert {name: shown[name] for name in limits} == limits
    chosen = job["spec"]["roles"][0]["template"]["spec"]["nodeSelector"]
    assert chosen == {"nvidia.com/gpu.product": "A100"}


def test_an_array_is_a_job_for_each_number() -> None:
    found = jobs(More(array="2-4", labels=["team=x"]))
    assert [one["metadata"]["name"] for one in found] == ["j-2", "j-3", "j-4"]
    assert found[0]["metadata"]["labels"] == {"team": "x", "lockstep.dev/array": "j"}
    assert container(found[1])["env"][-1] == {"name": "LOCKSTEP_ARRAY_INDEX", "value": "3"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("#!/bin/bash -e\necho $1\n", ["/bin/bash", "-e", "-c", "#!/bin/bash -e\necho $1\n", "s"]),
        ("echo $1\n", ["/bin/sh", "-c", "echo $1\n", "s"]),
        ("#!/usr/bin/env python3\nx=1\n", ["/usr/bin/env", "python3", "-c"]),
    ],
)
def test_a_script_runs_by_its_first_line(text: str, command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "s"
    script.write_text(text)
    found = More(script=script).command(["true"]) or []
    assert found[: len(command)] == command
    assert found[-1] == "true"


def test_an_env_file_sets_what_is_not_set(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# a comment\nexport A=1\nB='two words'\n\nC=\n")
    (job,) = jobs(More(env_file=file), env=["A=9"])
    shown = {one["name"]: one["value"] for one in container(job)["env"]}
    assert {name: shown[name] for name in "ABC"} == {"A": "9", "B": "two words", "C": ""}


@pytest.mark.parametrize(
    ("more", "flag"),
    [
        ({"array": "5-2"}, "--array"),
        ({"array": "x"}, "--array"),
        ({"array": "0-5000"}, "--array"),
        ({"runtime": "soon"}, "--runtime"),
        ({"ttl": "soon"}, "--ttl"),
        ({"labels": ["a"]}, "--label"),
        ({"env_file": Path("/nowhere")}, "--env-file"),
    ],
)
def test_what_makes_no_sense_names_its_flag(more: dict[str, Any], flag: str) -> None:
    with pytest.raises(BadFlag) as caught:
        jobs(More(**more))
    assert caught.value.flag == flag


@pytest.mark.parametrize("gpus", [1.5, 0.001])
def test_one_and_a_half_gpus_are_refused(gpus: float) -> None:
    with pytest.raises(BadFlag, match="neither whole GPUs nor a part of one"):
        jobs(More(), gpus=gpus)
