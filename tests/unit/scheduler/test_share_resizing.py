"""Shares of another size: granted where cards and queue have room, and counted at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.drawn import node, pod

from lockstep.api.containers import ContainerStatus, ResourceRequirements
from lockstep.api.core import Pod
from lockstep.api.meta import Condition
from lockstep.api.share_sizes import GRANTED, HELD
from lockstep.scheduler.core.cycle.share_resizing import answer_resize
from lockstep.scheduler.core.resources.columns import Columns
from lockstep.scheduler.core.state.cluster import Cluster


def share(name: str, memory: int, compute: int, wish: str = "", **more: Any) -> Pod:
    requests = {"lockstep.dev/gpu-memory": memory, "lockstep.dev/gpu-compute": compute}
    found = pod(name, requests=requests, on="a", held="0", **more)
    if not wish:
        return found
    annotations = {**found.metadata.annotations, "lockstep.dev/gpu-resize": wish}
    meta = msgspec.structs.replace(found.metadata, annotations=annotations)
    return msgspec.structs.replace(found, metadata=meta)


def cluster(*pods: Pod, kind: str = "process") -> Cluster:
    found = Cluster()
    devices = [{"index": index, "memory": 1000} for index in range(2)]
    labels = {"lockstep.dev/node": kind}
    found.set_node(node("a", gpus=2, devices=devices, labels=labels))
    for one in pods:
        found.set_pod(one)
    return found


def left(found: Cluster) -> tuple[int, int]:
    columns: Columns = found.columns
    row = found.table.rows["a"]
    memory, compute = (columns.card_ids[kind][0] for kind in ("memory", "compute"))
    return int(found.table.free[memory, row]), int(found.table.free[compute, row])


def container_of(one: Pod) -> str:
    return one.spec.containers[0].name


def wish(**size: int) -> str:
    name = container_of(share("p", 1, 1))
    return msgspec.json.encode({"container": name, **size}).decode()


CASES = [
    (wish(memory=600), True, "600 MiB, 30 %"),
    (
        wish(memory=601),
        False,
        "201 MiB of memory more are wanted of GPU 0 of node a",
    ),
    (wish(compute=50), True, "400 MiB, 50 %"),
    (wish(compute=51), False, "21 hundredths of compute more are wanted"),
    (wish(memory=100, compute=10), True, "100 MiB, 10 %"),
    ('{"container":"other","memory":1}', False, "no container other"),
    ('{"memory":1}', False, "cannot be read"),
    (wish(compute=101), False, "at most 100"),
]


@pytest.mark.parametrize(("text", "granted", "said"), CASES)
def test_what_card_has_left_decides(text: str, granted: bool, said: str) -> None:
    mine = share("mine", 400, 30, text)
    found = cluster(mine, share("other", 400, 50))
    answer = answer_resize(found, mine)
    assert (answer.granted, said in answer.message) == (granted, True), answer.message


def test_other_nodes_keep_shares_as_they_are() -> None:
    mine = share("mine", 400, 30, wish(memory=1))
    assert answer_resize(cluster(mine, kind="simulated"), mine).reason == "NotSupported"


def test_granted_counts_at_once_and_smaller_once_held() -> None:
    mine = share("mine", 400, 30, wish(memory=500, compute=20))
    found = cluster(mine)
    assert left(found) == (600, 70)
    condition = answer_resize(found, mine).condition(mine)
    found.resizes.assume(mine, condition)
    found.set_pod(mine)
    # The larger of what it has and of what it gets, part by part.
    assert left(found) == (500, 70)
    assert list(found.resizes.waiting) == [("default", "mine")]

    def seen(*conditions: Condition, limits: dict[str, Any] | None = None) -> None:
        told = ContainerStatus(
            name=container_of(mine), resources=ResourceRequirements(limits=limits or {})
        )
        status = msgspec.structs.replace(
            mine.status, conditions=list(conditions), container_statuses=[told]
        )
        found.set_pod(msgspec.structs.replace(mine, status=status))

    seen(condition)
    assert not found.resizes.waiting
    assert left(found) == (500, 70)
    held = msgspec.structs.replace(condition, type=HELD)
    limits = {"lockstep.dev/gpu-memory": "500", "lockstep.dev/gpu-compute": "20"}
    seen(condition, held, limits=limits)
    assert left(found) == (500, 80)
    # Refused by the node it keeps what it had.
    seen(condition, msgspec.structs.replace(held, status="False"))
    assert left(found) == (600, 70)
    assert condition.type == GRANTED


def test_queue_holds_growth_to_its_limit() -> None:
    from lockstep.api.meta import ObjectMeta
    from lockstep.api.queue import Queue, QueueSpec

    found = cluster()
    queue = Queue(
        metadata=ObjectMeta(name="default"), spec=QueueSpec(limit={"nvidia.com/gpu": "500m"})
    )
    found.set_queue(queue)
    mine = share("mine", 400, 30, wish(compute=60))
    found.set_pod(mine)
    found.settle()
    answer = answer_resize(found, mine)
    assert not answer.granted
    assert "queue default has 0.4 of nvidia.com/gpu in use and its limit is 0.5" in answer.message
