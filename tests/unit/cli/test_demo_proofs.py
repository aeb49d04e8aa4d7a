"""The demo's proofs fail where the cluster is not as it should be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.shown_objects import gang, node, pod

from lockstep.api.core import Node, Pod

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(DEMO))
    before = set(sys.modules)
    import proofs

    yield proofs
    for name in set(sys.modules) - before:
        if str(DEMO) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def member(name: str, of: str, on: str, gpus: str) -> Pod:
    return pod(
        name,
        node=on,
        gpus=2,
        labels={"lockstep.dev/gang": of},
        annotations={"lockstep.dev/gpus": gpus},
    )


NODES: dict[str, Node] = {"n0": node("n0"), "n1": node("n1", leaf="leaf-1")}
WHOLE = [member("a-0", "a", "n0", "0,1"), member("a-1", "a", "n0", "2,3"), pod("b-0", gpus=2)]


def test_a_sound_cluster_passes(demo: ModuleType) -> None:
    wanted = [demo.Wanted("a", 2, 2, "leaf"), demo.Wanted("b", 1, 2, "leaf")]
    assert demo.whole(wanted, WHOLE) == (["a"], ["b"])
    assert demo.inside_one_domain(wanted, WHOLE, NODES) == 1
    assert demo.no_gpu_twice(WHOLE, NODES) == 4
    demo.says_why({"b": gang("b", message="no room")}, ["b"])
    demo.could_not_fit(wanted, ["b"], free=1)


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        ([member("a-0", "a", "n0", "0,1")], "gang a has 1 of 2 pods bound"),
        (
            [member("a-0", "a", "n0", "0,1"), member("a-1", "a", "n1", "0,1")],
            "gang a needs one leaf",
        ),
        (
            [member("a-0", "a", "n0", "0,1"), member("a-1", "a", "n0", "1,2")],
            "GPU 1 of n0 is given to a-0 and to a-1",
        ),
        (
            [member("a-0", "a", "n0", "0"), member("a-1", "a", "n0", "2,3")],
            "a-0 asked for 2 GPUs and has",
        ),
        (
            [member("a-0", "a", "n0", "0,8"), member("a-1", "a", "n0", "2,3")],
            "GPU 8, which its node lacks",
        ),
    ],
)
def test_a_broken_cluster_fails(demo: ModuleType, pods: list[Pod], says: str) -> None:
    wanted = [demo.Wanted("a", 2, 2, "leaf")]
    with pytest.raises(demo.Failed, match=says):
        demo.whole(wanted, pods)
        demo.inside_one_domain(wanted, pods, NODES)
        demo.no_gpu_twice(pods, NODES)


def test_waiting_without_a_reason_or_without_need_fails(demo: ModuleType) -> None:
    wanted = [demo.Wanted("a", 2, 2, "leaf")]
    with pytest.raises(demo.Failed, match="does not say why"):
        demo.says_why({"a": gang("a")}, ["a"])
    with pytest.raises(demo.Failed, match="no gang waits"):
        demo.could_not_fit(wanted, [], free=0)
    with pytest.raises(demo.Failed, match="4 GPUs are waited for while 4 are free"):
        demo.could_not_fit(wanted, ["a"], free=4)
