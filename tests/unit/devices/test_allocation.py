"""Which devices a kubelet had better give, and how records are corrected."""

from __future__ import annotations

import pytest

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.devices.core.allocation import Correction, Held, corrections, preferred
from lockstep.devices.core.model import Card

CARDS = [Card(index=index, uuid=f"u{index}") for index in range(4)]
ALL = {"u0", "u1", "u2", "u3"}


def pod(name: str, gpus: str, asked: int = 1, at: int = 0, phase: str = "Pending") -> Pod:
    metadata = {
        "name": name,
        "namespace": "n",
        "creationTimestamp": f"2026-01-01T00:00:{at:02d}Z",
        "annotations": {"lockstep.dev/gpus": gpus} if gpus else {},
    }
    resources = {"limits": {"nvidia.com/gpu": str(asked)}}
    spec = {"containers": [{"name": "main", "resources": resources}]}
    return convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


def hold(**pods: list[str]) -> Held:
    return {("n", name): {"main": ids} for name, ids in pods.items()}


@pytest.mark.parametrize(
    ("pods", "held", "available", "size", "given"),
    [
        ([pod("a", "2")], {}, ALL, 1, ["u2"]),
        ([pod("a", "2,0", 2)], {}, ALL, 2, ["u2", "u0"]),
        ([pod("b", "3", at=9), pod("a", "2", at=1)], {}, ALL, 1, ["u2"]),
        ([pod("a", "2", at=1), pod("b", "3", at=9)], hold(a=["u2"]), ALL - {"u2"}, 1, ["u3"]),
        ([pod("a", "2")], {}, ALL - {"u2"}, 1, ["u0"]),
        ([pod("a", "2,3", 2)], {}, ALL, 1, ["u0"]),
        ([pod("a", "2", phase="Failed")], {}, ALL, 1, ["u0"]),
        ([pod("a", "9")], {}, ALL, 1, ["u0"]),
        ([pod("a", "first")], {}, ALL, 1, ["u0"]),
        ([], {}, {"u3", "u1"}, 2, ["u1", "u3"]),
    ],
    ids=[
        "the scheduler's card",
        "in its order",
        "the oldest pod first",
        "those that hold are over",
        "a taken card falls back",
        "another size is another pod's",
        "a pod that is over waits for nothing",
        "an unknown index",
        "an unreadable annotation",
        "nobody waits",
    ],
)
def test_kubelet_is_told_the_schedulers_choice(
    pods: list[Pod], held: Held, available: set[str], size: int, given: list[str]
) -> None:
    assert preferred(available, [], size, pods=pods, held=held, cards=CARDS) == given


def test_what_must_be_included_comes_first() -> None:
    assert preferred(ALL, ["u3"], 2, pods=[], held={}, cards=CARDS) == ["u3", "u0"]


def test_two_alike_pods_that_kubelet_swapped_are_corrected() -> None:
    pods = [pod("a", "0"), pod("b", "1")]
    assert corrections(pods, hold(a=["u1"], b=["u0"]), CARDS) == [
        Correction("n", "a", "0", "1"),
        Correction("n", "b", "1", "0"),
    ]


@pytest.mark.parametrize(
    ("pods", "held"),
    [
        ([pod("a", "0")], hold(a=["u0"])),
        ([pod("a", "0")], {}),
        ([pod("a", "0")], hold(a=["gone"])),
        ([pod("a", "0", phase="Succeeded")], hold(a=["u1"])),
    ],
    ids=["as recorded", "not given yet", "a card that is not there now", "over"],
)
def test_nothing_else_is_corrected(pods: list[Pod], held: Held) -> None:
    assert corrections(pods, held, CARDS) == []


def test_order_in_which_kubelet_tells_cards_is_no_change() -> None:
    pods = [pod("a", "1,2", 2, phase="Running")]
    for ids in (["u1", "u2"], ["u2", "u1"]):
        assert corrections(pods, hold(a=ids), CARDS) == []
