"""``simulate`` on the command line: what its options come to."""

import json

import pytest
from tests.support.simulated_jobs import job, training_job
from typer.testing import CliRunner

from lockstep.api.names import API_VERSION, CHECKPOINT_ANNOTATION
from lockstep.cli.simulate import app
from lockstep.cli.simulate_options import Breakage
from lockstep.nodes.simulated.fleet import fleet, node_object
from lockstep.nodes.simulated.spec import parse


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


@pytest.mark.parametrize(
    ("flag", "needed"),
    [
        ("--spot-mtbf", "--spot SELECTOR"),
        ("--spot-return", "--spot SELECTOR"),
        ("--node-repair", "--node-mtbf HOURS"),
    ],
)
def test_what_would_do_nothing_is_refused_with_what_is_missing(scattered, flag, needed):
    done = CliRunner().invoke(app, [*scattered, flag, "5"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert flag in done.output
    assert f"it does nothing by itself; add {needed}" in done.output


@pytest.mark.parametrize(
    ("given", "hours"),
    [
        pytest.param(Breakage(spot="pay=spot"), (24, 1), id="left out"),
        pytest.param(Breakage(spot="pay=spot", spot_mtbf=3, spot_return=2), (3, 2), id="given"),
    ],
)
def test_how_often_and_long_spot_nodes_leave_is_optional(given, hours):
    assert (given.faults.spot_mtbf, given.faults.spot_return) == hours


@pytest.mark.parametrize("made", [job, training_job], ids=["gang", "job"])
def test_placements_name_the_nics_beside_the_gpus(tmp_path, made):
    """Two GPUs share a root: a pod of one GPU and NIC gets both there, as its job asks."""
    jobs = [
        made("one", "1x1", runs=50),
        made("two", "1x2", runs=50, alignment={"required": ["pcie"]}),
    ]
    for one in jobs:
        [part] = one["spec"].get("groups") or one["spec"]["roles"]
        limits = part["template"]["spec"]["containers"][0]["resources"]["limits"]
        limits["lockstep.dev/nics"] = limits["nvidia.com/gpu"]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    options = ["--cluster", "1x8,gpus-per-root=2", "--jobs", str(file), "-o", "json"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    got = {p["job"]: (p["gpus"], p["nics"]) for p in json.loads(done.output)["placements"]}
    assert got == {"one": ([0], [0]), "two": ([2, 3], [2, 3])}


def policy(*tiers):
    chosen = [{"name": t, "selector": {"matchLabels": {"leaf": leaf}}} for t, leaf in tiers]
    meta = {"name": "cheap"}
    return {"apiVersion": API_VERSION, "kind": "NodePolicy", "metadata": meta} | {
        "spec": {"tiers": chosen}
    }


@pytest.mark.parametrize(
    ("options", "tiers", "said"),
    [
        ([], [("first", "leaf-0-0")], []),
        (["--spot", "leaf=leaf-0-0"], [("first", "leaf-0-0")], []),
        (
            ["--spot", "pay=spot"],
            [("first", "leaf-0-0")],
            ["--spot pay=spot: none of the 4 nodes has such labels, so none is reclaimed"],
        ),
        ([], [("first", "leaf-9")], ["NodePolicy cheap: no node is in its tier first"]),
        (
            [],
            [("first", "leaf-0-0"), ("again", "leaf-0-0")],
            ["NodePolicy cheap: no node is in its tier again"],
        ),
    ],
    ids=["nothing", "a spot leaf", "no spot node", "an empty tier", "nodes of an earlier tier"],
)
def test_what_chooses_no_node_is_named(scattered, tmp_path, options, tiers, said):
    named = {"apiVersion": "v1", "kind": "Node"}
    nodes = [named | node_object(node, 0.0) | {"spec": {}} for node in fleet(parse("4x8")).values()]
    file = tmp_path / "cluster.json"
    objects = {"apiVersion": "v1", "kind": "List", "items": [*nodes, policy(*tiers)]}
    file.write_text(json.dumps(objects))
    done = CliRunner().invoke(app, ["--cluster", str(file), *scattered[2:], *options])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [f"warning: {line}" for line in said]
    assert json.loads(done.stdout)["ended"] == 9
