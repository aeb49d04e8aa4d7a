"""Which cards of a process node still have room for a pod with a share."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import ResourceRequirements
from lockstep.api.meta import ObjectMeta
from lockstep.devices.core.model import Card
from lockstep.nodes.process.environment import Command
from lockstep.nodes.process.shares import Entered, taken
from lockstep.nodes.process.spec import Container, Pod, PodSpec

CARDS = (Card(index=0, memory=1000), Card(index=1, memory=1000))
WHOLE: dict[str, Any] = {"nvidia.com/gpu": 1}


def pod(*limits: dict[str, Any]) -> Pod:
    containers = [
        Container(name=f"c{number}", resources=ResourceRequirements(limits=one))
        for number, one in enumerate(limits)
    ]
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=containers))


def share(memory: int = 0, compute: int = 0) -> dict[str, Any]:
    return {"lockstep.dev/gpu-memory": memory, "lockstep.dev/gpu-compute": compute}


CASES: list[tuple[str, Pod, list[tuple[Pod, list[int]]], set[int]]] = [
    ("an empty node", pod(share(500)), [], set()),
    ("memory is left", pod(share(500)), [(pod(share(500)), [0])], set()),
    ("memory is short", pod(share(501)), [(pod(share(500)), [0])], {0}),
    ("time is short", pod(share(1, 41)), [(pod(share(1, 60)), [1])], {1}),
    ("a card held whole", pod(share(1)), [(pod(WHOLE), [0])], {0}),
    ("a whole card beside a share", pod(WHOLE), [(pod(share(1)), [0])], {0}),
    ("containers add up", pod(share(300), share(300)), [(pod(share(500)), [0, 1])], {0, 1}),
]


@pytest.mark.parametrize(
    ("mine", "others", "full"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cards_without_room(mine: Pod, others: list[tuple[Pod, list[int]]], full: set[int]) -> None:
    assert taken(mine, others, CARDS) == full


def test_the_front_comes_before_other_libraries() -> None:
    entered = Entered(variables=(("LOCKSTEP_SHARE", "/s"),), libraries="/front")
    command = Command(["x"], {"LD_LIBRARY_PATH": "/own"}, "/")
    assert entered.joined(command).env == {
        "LOCKSTEP_SHARE": "/s",
        "LD_LIBRARY_PATH": "/front:/own",
    }


def test_a_container_without_a_share_is_left_as_it_is() -> None:
    command = Command(["x"], {"A": "b"}, "/")
    assert Entered().joined(command) is command
