"""The nine groups of checks over one machine's tree, live or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from lockstep.api.network import Check, Measured, NodeAnswer, Verdict
from lockstep.api.topology import Rail
from lockstep.api.wire import Wire
from lockstep.devices.network.checklist import addresses, hardware, lossless, odd
from lockstep.devices.network.checklist.about import About, answer, well
from lockstep.devices.network.core.rails import assigned
from lockstep.devices.network.core.summary import summed_up
from lockstep.devices.network.inventory import default_routes, nics
from lockstep.devices.network.tree import Tree

GROUPS: Final = (
    "pcie",
    "port",
    "limits",
    "gid",
    "vlan",
    "arp",
    "lossless",
    "function",
    "odd",
)
SEARCHES: Final[Mapping[str, Callable[[About], Iterator[Check]]]] = {
    "pcie": hardware.pcie,
    "port": hardware.port,
    "limits": hardware.limits,
    "gid": addresses.gid,
    "vlan": addresses.vlan,
    "arp": addresses.arp,
    "lossless": lossless.lossless,
    "odd": odd.inside,
}
KINDS: Final[Mapping[str, str]] = {"pcie": "nic", "port": "cable", "odd": "odd"}
"""What is at fault by the group that failed; the configuration in all others."""


def about(tree: Tree, rails: Sequence[Rail] = ()) -> About:
    """Return what the checks look at.

    Raises:
        ValueError: when a rail is stated wrongly.
    """
    found = assigned(nics(tree), rails, default_routes(tree))
    # Without RDMA those on a rail carry the training traffic; the others are not looked at.
    chosen = [nic for nic in found if nic.hca] or [nic for nic in found if nic.rail]
    return About(tree, chosen, tuple(rails))


def checks(seen: Sequence[About]) -> list[Check]:
    """Return what all groups say of the machines, and what makes one of them odd."""
    found: list[Check] = []
    for one in seen:
        if not one.nics:
            told = "no RDMA device and no NIC on a rail"
            found.append(answer("port", "unknown", one.tree.name, told, "state rails with --rail"))
            continue
        for group, search in SEARCHES.items():
            said = _searched(group, search, one)
            found += said or [well(group, one.tree.name)]
        found += _missing(one)
    if len(seen) > 1:
        found += odd.between(seen)
    return found


class _Row(Wire, frozen=True):
    source: str = msgspec.field(name="from")
    to: str
    rail: str
    rate: float = 0.0
    back: float = 0.0
    resent: float = 0.0
    resent_back: float = 0.0
    problem: str = ""


def recorded_matrix(text: str) -> list[Check]:
    """Return what a recorded matrix says, as ``check -o json`` shows it under ``matrix``.

    Raises:
        ValueError: when it is none, naming what is missing.
    """
    try:
        rows = msgspec.json.decode(text, type=list[_Row])
    except msgspec.MsgspecError as error:
        raise ValueError(f"the matrix: {error}") from None
    answers: dict[str, NodeAnswer] = {}
    for row in rows:
        before = answers.get(row.source, NodeAnswer(state="done"))
        one = Measured(
            peer=row.to,
            rail=row.rail,
            rate=row.rate,
            back=row.back,
            resent=row.resent,
            resent_back=row.resent_back,
            problem=row.problem,
        )
        answers[row.source] = replace(before, measured=[*before.measured, one])
        answers.setdefault(row.to, NodeAnswer(state="done"))
    found, _ = summed_up(sorted(answers), answers)
    return found


def _searched(group: str, search: Callable[[About], Iterator[Check]], one: About) -> list[Check]:
    """Return what a group says; a tree that it stumbles over is said, and the rest counts."""
    try:
        return list(search(one))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        told = f"cannot be read: {type(error).__name__}: {error}"[:300]
        return [answer(group, "unknown", one.tree.name, told, "record the tree anew")]


def _missing(one: About) -> Iterator[Check]:
    """Yield what tools did not say, where it was needed."""
    for name, why in sorted(one.tree.missing.items()):
        group = ASKED.get(name.partition("-")[0], ASKED.get(name, "function"))
        yield answer(group, "unknown", one.tree.name, f"{name}: {why}", "install the tool")


ASKED: Final[Mapping[str, str]] = {
    "ip": "arp",
    "rdma": "limits",
    "lldp": "vlan",
    "lspci": "pcie",
    "gpu": "pcie",
    "qos": "lossless",
    "ethtool": "port",
}


def verdict(found: Sequence[Check]) -> Verdict:
    """Return the first thing that failed, in the order of groups; one that is odd comes last."""
    failed = [one for one in found if one.state == "fail"]
    if not failed:
        seen = any(one.state == "ok" for one in found)
        return Verdict(kind="healthy" if seen else "unknown")
    first = min(failed, key=lambda one: GROUPS.index(one.group))
    kind = KINDS.get(first.group, "configuration")
    return Verdict(kind=kind, place=first.place, evidence=first.evidence)
