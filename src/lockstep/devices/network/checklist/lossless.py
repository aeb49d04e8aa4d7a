"""Whether RoCE's traffic is paused before it is dropped: trust, PFC, ECN, at both ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lockstep.api.network import Check
from lockstep.devices.network.checklist.about import About, answer
from lockstep.devices.network.checklist.neighbour import neighbour, pfc
from lockstep.devices.network.core.model import Nic

RETRIES: Final = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)
MOST: Final = 100
"""Counted events above which packets are said to be lost."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What ``mlnx_qos`` says of a port; ``mapped`` are the priorities of DSCP values."""

    trust: str
    paused: frozenset[int]
    mapped: dict[int, int]


def quality(text: str) -> Quality | None:
    """Return what ``mlnx_qos -i NETDEV`` says; None where that is not what it is."""
    trust = re.search(r"[Tt]rust state:\s*(\w+)", text)
    enabled = re.search(r"^\s*enabled\s+((?:[01]\s+){7}[01])", text, re.MULTILINE)
    if trust is None or enabled is None:
        return None
    paused = frozenset(n for n, flag in enumerate(enabled[1].split()) if flag == "1")
    mapped: dict[int, int] = {}
    for prio, listed in re.findall(r"prio:\s*(\d)\s+dscp:\s*([\d,\s]+)", text):
        mapped |= {int(one): int(prio) for one in re.findall(r"\d+", listed)}
    return Quality(trust[1].lower(), paused, mapped)


def lossless(one: About) -> Iterator[Check]:
    """Yield ports that drop what they should pause, and what they have dropped."""
    for nic in one.roce():
        yield from _configured(one, nic)
        yield from _retried(one, nic)


def _configured(one: About, nic: Nic) -> Iterator[Check]:
    place = one.place(nic)
    said = one.tree.tool("qos", nic.netdev) if nic.netdev else ""
    if not said:
        return
    found = quality(said)
    if found is None:
        told = f"mlnx_qos says what is not known: {said[:80]!r}"
        yield answer("lossless", "unknown", place, told, "use a version of mlnx_qos from MLNX_OFED")
        return
    if found.trust != "dscp":
        told = f"the port trusts {found.trust}, and RoCE v2 marks by DSCP"
        yield answer("lossless", "fail", place, told, f"mlnx_qos -i {nic.netdev} --trust dscp")
    if len(found.paused) != 1:
        told = "PFC is on for " + (_listed(found.paused) if found.paused else "no priority")
        fix = f"mlnx_qos -i {nic.netdev} --pfc 0,0,0,1,0,0,0,0"
        yield answer("lossless", "fail" if not found.paused else "warn", place, told, fix)
    yield from _marked(one, nic, found)
    yield from _far_end(one, nic, found)
    for priority in sorted(found.paused):
        for side in ("roce_np", "roce_rp"):
            file = f"sys/class/net/{nic.netdev}/ecn/{side}/enable/{priority}"
            if one.tree.text(file) == "0":
                told = f"ECN is off for priority {priority}: /{file} is 0"
                yield answer("lossless", "fail", place, told, f"echo 1 > /{file}")


def _marked(one: About, nic: Nic, found: Quality) -> Iterator[Check]:
    """Yield a traffic class whose DSCP is mapped to a priority that is not paused."""
    text = one.tree.text(f"sys/class/infiniband/{nic.hca}/tc/1/traffic_class")
    number = re.search(r"(\d+)", text)
    if number is None or not found.paused:
        return
    dscp = int(number[1]) >> 2
    priority = found.mapped.get(dscp, dscp >> 3)
    if priority not in found.paused:
        told = f"traffic class {number[1]} is DSCP {dscp}, priority {priority}; "
        told += f"PFC is on for {_listed(found.paused)}"
        fix = f"mark with a DSCP of priority {min(found.paused)}, and NCCL_IB_TC with it"
        yield answer("lossless", "fail", one.place(nic), told, fix)


def _far_end(one: About, nic: Nic, found: Quality) -> Iterator[Check]:
    far = pfc(neighbour(one.tree, nic.netdev))
    if far is not None and far != set(found.paused):
        told = f"the switch pauses {_listed(far)}, the NIC {_listed(found.paused)}"
        fix = "set the same priority at both ends: one-way pauses lose packets in silence"
        yield answer("lossless", "fail", one.place(nic), told, fix)


def _retried(one: About, nic: Nic) -> Iterator[Check]:
    for name in RETRIES:
        text = one.tree.text(f"sys/class/infiniband/{nic.hca}/ports/1/hw_counters/{name}")
        if text.isdecimal() and int(text) > MOST:
            told = f"{name} is {text}: packets were lost"
            fix = "look at PFC and ECN at both ends, and at the cable"
            yield answer("lossless", "warn", one.place(nic), told, fix)


def _listed(numbers: frozenset[int] | set[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
