"""Which cards of a process node still have room for a pod with a share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.support.share_slots import occupy

from lockstep.api.containers import ResourceRequirements
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.share_sizes import GRANTED, HELD, Size
from lockstep.devices.core.model import Card
from lockstep.devices.sharing import front
from lockstep.devices.sharing.clock import SECOND
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.sharing.region import Region
from lockstep.devices.sharing.shelf import Grant, Shelf
from lockstep.nodes.process.environment import Command
from lockstep.nodes.process.shares import Entered, Shares, taken
from lockstep.nodes.process.spec import Container, Pod, PodSpec, PodStatus

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


MIB = 1 << 20
ANSWERS: list[tuple[str, dict[str, int], tuple[bool, str], tuple[int, int]]] = [
    ("larger", {"memory": 900, "compute": 60}, (True, "900 MiB, 60 %"), (900, 60)),
    ("one of both", {"compute": 10}, (True, "500 MiB, 10 %"), (500, 10)),
    ("down to its use", {"memory": 300}, (True, "300 MiB, 40 %"), (300, 40)),
    ("below its use", {"memory": 299}, (False, "uses 300 MiB of a card"), (500, 40)),
]


@pytest.mark.parametrize(
    ("size", "said", "left"), [case[1:] for case in ANSWERS], ids=[c[0] for c in ANSWERS]
)
def test_granted_size_is_held(
    tmp_path: Path, size: dict[str, int], said: tuple[bool, str], left: tuple[int, int]
) -> None:
    shares = held(tmp_path, 300)
    found = shares.resize(wanting(size))
    assert found is not None
    assert (found.done, said[1] in found.message) == (said[0], True), found.message
    memory, compute = left
    (part,) = Region(shares.shelf.path("u", "c0")).parts()
    assert (part.memory, part.compute) == (memory * MIB, compute)
    (grant,) = [one for one, _ in shares.shelf.grants()]
    assert (grant.memory, grant.compute) == (memory * MIB, compute)
    changed = {} if left == (500, 40) else {"c0": Size(*left)}
    assert shares.sizes(wanting(size)) == changed


def test_nothing_is_resized_that_was_not_granted_or_is_done(tmp_path: Path) -> None:
    shares = held(tmp_path, 0)
    assert shares.resize(wanting({"memory": 1}, granted="False")) is None
    assert shares.resize(wanting({"memory": 1}, kinds=())) is None
    assert shares.resize(wanting({"memory": 1}, kinds=(GRANTED, HELD))) is None
    assert shares.sizes(wanting({"memory": 1})) == {}


def test_container_that_starts_again_keeps_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "find", lambda: front.Front(tmp_path, tmp_path))
    cards = (Card(index=0, memory=1000, uuid="GPU-0"),)
    shares = Shares(tmp_path, cards, mounts=False)
    resized = wanting({"memory": 300})
    shares.enter(resized, resized.spec.containers[0], [0], None)
    assert shares.resize(resized) is not None
    shares.enter(resized, resized.spec.containers[0], [0], None)
    (part,) = Region(shares.shelf.path("u", "c0")).parts()
    assert (part.memory, part.compute) == (300 * MIB, 40)


def test_agent_finishes_what_a_killed_node_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = held(tmp_path, 0)
    with monkeypatch.context() as patched:
        patched.setattr(Region, "limit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shares.resize(wanting({"memory": 300}))
    granter = Granter(tmp_path)
    granter.turn(granter.clock.now())
    granter.turn(granter.clock.now() + SECOND)
    (part,) = Region(shares.shelf.path("u", "c0")).parts()
    assert part.memory == 300 * MIB
    found = Shares(tmp_path, CARDS, mounts=False).resize(wanting({"memory": 300}))
    assert found is not None
    assert found.done


def test_damaged_share_is_said(tmp_path: Path) -> None:
    shares = held(tmp_path, 0)
    shares.shelf.path("u", "c0").write_bytes(b"")
    found = shares.resize(wanting({"memory": 1}))
    assert found is not None
    assert (found.done, found.reason) == (False, "NotHeld")


def test_what_was_granted_counts_on_card() -> None:
    grown = wanting({"memory": 900})
    assert taken(pod(share(101)), [(grown, [0])], CARDS) == {0}
    assert taken(pod(share(100)), [(grown, [0])], CARDS) == set()


def held(place: Path, used: int) -> Shares:
    """A share of 500 MiB and 40 hundredths of which this process uses so many MiB."""
    shelf = Shelf(place)
    grant = Grant(
        namespace="",
        pod="p",
        container="c0",
        uid="u",
        cards=["GPU-0"],
        memory=500 * MIB,
        compute=40,
    )
    # It lives as long as the tests do.
    occupy(shelf.put(grant), used=used * MIB)
    return Shares(place, CARDS, mounts=False)


def wanting(
    size: dict[str, int],
    granted: Literal["True", "False"] = "True",
    kinds: tuple[str, ...] = (GRANTED,),
) -> Pod:
    text = json.dumps({"container": "c0", **size})
    told = [Condition(type=kind, status=granted, message=f"{text}: yes") for kind in kinds]
    limits = ResourceRequirements(limits=share(500, 40))
    return Pod(
        metadata=ObjectMeta(name="p", uid="u", annotations={"lockstep.dev/gpu-resize": text}),
        spec=PodSpec(containers=[Container(name="c0", resources=limits)]),
        status=PodStatus(conditions=told),
    )
