"""``python -m bench fgd``: what it prints and what it refuses."""

import csv
import json
from pathlib import Path

import pytest
from bench.fgd.command import app
from typer.testing import CliRunner, Result

from lockstep.cli.failure import BadInput

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,8000,2,A\nn2,8000,8000,2,B\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
whole,1000,1000,1,1000,
both,1000,1000,2,1000,B
share,1000,1000,1,500,A
cpu,1000,1000,0,0,
"""


@pytest.fixture
def lists(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return ["--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]


def call(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def test_a_run_from_a_seed_prints_the_figures(lists: list[str]) -> None:
    result = call(*lists, "--seed", "3", "--inflate", "2", "-o", "json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["policy"] == "lockstep"
    assert set(figures["allocation"]) == {"100", "130"}
    assert figures["allocation"]["130"] >= figures["allocation"]["100"] > 0
    assert figures["pods"] == figures["placed"] + sum(figures["dropped"].values())
    assert figures["first_drop_at"] > 0
    assert figures["seconds"] > 0


def test_given_arrivals_are_placed_in_their_order_and_written(
    lists: list[str], tmp_path: Path
) -> None:
    order = ["both", "whole", "cpu", "share", "share", "both", "whole"]
    lines = [f"{i},{pod}" for i, pod in enumerate(order)]
    (tmp_path / "order.csv").write_text("\n".join(["arrival,pod", *lines]) + "\n")
    placed = tmp_path / "placed.csv"
    result = call(
        *lists,
        *("--arrivals", str(tmp_path / "order.csv"), "--placements", str(placed)),
        *("--policy", "best-fit", "-o", "json"),
    )
    assert result.exit_code == 0, result.output
    with placed.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["pod"] for row in rows] == order
    assert (rows[0]["node"], rows[0]["gpus"]) == ("n2", "0-1")
    assert rows[2]["gpus"] == ""
    assert [row["node"] for row in rows[3:]] == ["n1", "n1", "", ""]
    assert rows[3]["gpus"] == rows[4]["gpus"], "two halves share a card"
    assert json.loads(result.stdout)["dropped"] == {"1-gpu": 1, "2-gpu": 1}


def test_a_run_is_readable_too(lists: list[str]) -> None:
    result = call(*lists, "--seed", "3", "--policy", "fgd")
    assert result.exit_code == 0, result.output
    assert "policy      fgd" in result.stdout
    assert "of the GPUs in the end" in result.stdout


REFUSED = [
    ([], "say --seed N to draw the arrivals"),
    (["--arrivals", "x.csv", "--inflate", "1.2"], "--inflate draws arrivals"),
    (["--seed", "1", "--policy", "worst"], "choose one of lockstep"),
]


@pytest.mark.parametrize(("args", "said"), REFUSED)
def test_wrong_usage_says_what_to_do(lists: list[str], args: list[str], said: str) -> None:
    result = call(*lists, *args)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def test_a_bad_file_fails_with_its_name(lists: list[str], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES.replace(",2,", ",0,"))
    result = call(*lists, "--seed", "1")
    assert isinstance(result.exception, BadInput)
    assert "no node has a GPU" in str(result.exception)
