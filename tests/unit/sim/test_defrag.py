import pytest
from tests.support.simulated_jobs import job

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.defrag import Mover, defragment
from lockstep.sim.workload import read_workloads
from lockstep.sim.world import world_of


def standing(name, node, gpus):
    """Return the only pod of a running job."""
    held = ",".join(map(str, gpus))
    return convert(
        {
            "metadata": {
                "name": f"{name}-worker-0",
                "namespace": "default",
                "uid": name,
                "labels": {"lockstep.dev/gang": name, "lockstep.dev/gang-group": "worker"},
                "annotations": {"lockstep.dev/gpus": held},
            },
            "spec": {
                "nodeName": node,
                "schedulerName": "lockstep",
                "containers": [
                    {"name": "m", "resources": {"limits": {"nvidia.com/gpu": len(gpus)}}}
                ],
            },
            "status": {"phase": "Running"},
        },
        Pod,
    )


def planned(wanted, running, *, movable, nodes=3):
    """Return the plan for *wanted* where *running* jobs stand: by name, node, GPUs and price."""
    world = world_of(parse(f"{nodes}x8"))
    names = list(world.nodes)
    for name, (node, gpus, _) in running.items():
        pod = standing(name, names[node], range(gpus))
        world.pods["default", pod.metadata.name] = pod
    jobs = [job(name, f"1x{gpus}") for name, (_, gpus, _) in running.items()]
    works = read_workloads(jobs, world)
    movers = [Mover(w, running[w.key.name][2]) for w in works if w.key.name in movable]
    (work,) = read_workloads([wanted], world)
    plan = defragment(world, works, work, movers)
    return None if plan is None else {move.job for move in plan.moves}


@pytest.mark.parametrize(
    ("wanted", "running", "movable", "moved"),
    [
        pytest.param(
            job("new", "2x8"),
            {"a": (0, 2, 10), "b": (1, 2, 5), "c": (2, 2, 1)},
            "abc",
            {"b", "c"},
            id="the cheapest that make room move together",
        ),
        pytest.param(
            job("new", "1x8"),
            {"a": (0, 4, 1), "b": (1, 4, 2), "c": (2, 4, 3)},
            "abc",
            {"a"},
            id="one move is enough, the cheapest",
        ),
        pytest.param(
            job("new", "1x8"),
            {"a": (0, 4, 1), "b": (1, 4, 2), "c": (2, 4, 3)},
            "bc",
            {"b"},
            id="who may not move stays",
        ),
        pytest.param(
            job("new", "2x8"),
            {"a": (0, 6, 1), "b": (1, 6, 2), "c": (2, 6, 3)},
            "abc",
            None,
            id="nothing helps where those who move find no place",
        ),
        pytest.param(
            job("new", "1x2"),
            {"a": (0, 4, 1)},
            "a",
            None,
            id="nobody moves for what fits already",
        ),
    ],
)
def test_a_plan_moves_the_cheapest_jobs_that_let_the_waiting_one_start(
    wanted, running, movable, moved
):
    assert planned(wanted, running, movable=movable) == moved
