"""Plays a kernel log on simulated nodes: what the annotation says goes through the agent's parser.

GPU i of a simulated node is at the PCI address ``0000:(10 + i):00``, NIC i at ``0000:(90 + i):00``,
in hexadecimal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from lockstep.api import names
from lockstep.api.core import Node
from lockstep.api.devices import Device
from lockstep.api.node_health import NODE_HEALTHS, Checked, CheckResult, Finding, NodeHealth
from lockstep.api.timestamp import show
from lockstep.health.core.findings import Key, added, finding_of, key
from lockstep.health.returning import after_checks
from lockstep.health.writing import load, put
from lockstep.kube.client import Client

READ = "simulated"
_FIRST_BUS = {"gpu": 0x10, "nic": 0x90}


async def play(client: Client, node: Node, there: NodeHealth | None) -> None:
    """Make the node's NodeHealth say what its annotation says; without one, nothing is wrong.

    *there* is the NodeHealth as far as it is known.

    Raises:
        ApiError: when the server cannot be used now; the caller tries again later.
    """
    log = node.metadata.annotations.get(names.KERNEL_LOG_ANNOTATION)
    if log is None and there is None:
        return
    if there is not None:
        await _answer(client, node, there)
    there = there or await load(client, node.metadata.name)
    now = show(time.time())
    known = {key(one): one.since for one in there.spec.findings}
    found = [
        replace(one, since=known.get(key(one), now), last=known.get(key(one), now))
        for one in _findings(node, log or "")
    ]
    found += [one for one in there.spec.findings if one.by]
    await put(client, there, found, READ)


async def _answer(client: Client, node: Node, there: NodeHealth) -> None:
    """Pass the checks that are asked for; fail those that the annotation names."""
    asked, checked = there.status.asked, there.spec.checked
    if not asked or (checked is not None and checked.asked == asked):
        return
    fails = node.metadata.annotations.get(names.FAILED_CHECKS_ANNOTATION, "").split(",")
    results = [
        CheckResult(name=one, state="failed" if one in fails else "ok", evidence="simulated")
        for one in there.status.checks
        if one != "network"
    ]
    body = {
        "metadata": {"resourceVersion": there.metadata.resource_version},
        "spec": after_checks(there, Checked(asked=asked, results=results), show(time.time())),
    }
    await client.patch(NODE_HEALTHS, node.metadata.name, body)


def _findings(node: Node, log: str) -> Iterator[Finding]:
    devices = dict(_devices(node))
    found: dict[Key, Finding] = {}
    for line in log.splitlines():
        if (one := finding_of(line, devices)) is not None:
            added(found, one)
    yield from found.values()


def _devices(node: Node) -> Iterator[tuple[str, str]]:
    stated = node.metadata.annotations.get(names.DEVICES_ANNOTATION, "[]")
    for device in msgspec.json.decode(stated, type=list[Device]):
        bus = _FIRST_BUS[device.kind] + device.index
        yield f"0000:{bus:02x}:00", f"{device.kind}/{device.index}"
