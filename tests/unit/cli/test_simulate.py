"""``simulate`` on the command line: what its options come to."""

import json

import pytest
from tests.support.simulated_jobs import job
from typer.testing import CliRunner

from lockstep.api.names import CHECKPOINT_ANNOTATION
from lockstep.cli.simulate import app


@pytest.fixture
def scattered(tmp_path):
    """Jobs after whose first half four nodes are half free, and one that wants two whole ones."""
    jobs = []
    for node in "abcd":
        long = job(f"{node}-long", "1x4", runs=5000)
        long["metadata"]["annotations"][CHECKPOINT_ANNOTATION] = "2026-01-01T00:00:00Z"
        jobs += [job(f"{node}-short", "1x4", runs=100), long]
    jobs.append(job("whole", "2x8", at=10, runs=500))
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    return ["--cluster", "4x8", "--jobs", str(file), "-o", "json"]


@pytest.mark.parametrize(
    ("options", "rearrangements", "moves"),
    [
        pytest.param([], 0, 0, id="nobody moves unless asked"),
        pytest.param(["--defrag", "2m"], 0, 0, id="in the hour after it began nobody moves"),
        pytest.param(["--defrag", "2m,8h,1s"], 1, 2, id="after, maximal price, cool-down"),
        pytest.param(["--defrag", "2m,10s,1s"], 0, 0, id="the price is too high"),
    ],
)
def test_defrag_is_a_policy_for_all_queues(scattered, options, rearrangements, moves):
    done = CliRunner().invoke(app, [*scattered, "--until", "3000", *options])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output)
    assert (figures["rearrangements"], figures["moves"]) == (rearrangements, moves)
    assert (figures["movedGpuHours"] > 0) == bool(moves)


@pytest.mark.parametrize("text", ["soon", "1m,2h,3h,4h", ""])
def test_a_policy_that_is_none_is_refused(scattered, text):
    done = CliRunner().invoke(app, [*scattered, "--defrag", text])
    assert done.exit_code == 2
    assert "--defrag" in done.output
