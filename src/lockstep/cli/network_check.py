"""Has the node agents measure the network, and judges what they say."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.api.core import NODES, PODS, Node
from lockstep.api.names import JOB_LABEL
from lockstep.api.network import NETWORK_CHECKS, Check, NetworkCheck, NodeAnswer, Verdict
from lockstep.api.node_health import NETWORK_CAUSE, Finding
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES, Rail, Topology
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.output import note
from lockstep.devices.network.checklist import verdict as of_checks
from lockstep.devices.network.core.rounds import sampled
from lockstep.devices.network.core.summary import best, summed_up
from lockstep.health.writing import load, put
from lockstep.kube.errors import ApiError, NotFound

EVERY: Final = 0.25
"""Seconds between two looks at the answers."""
AGAIN: Final = 2
"""How often what is slow is measured again before it is believed."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to measure."""

    names: tuple[str, ...]
    rails: tuple[Rail, ...]
    seconds: float
    peers: int
    patience: float
    across: bool = False


async def measured(session: Session, wish: Wish) -> Json:
    """Return checks, verdict and matrix of what was wished for.

    Raises:
        BadInput: when nodes are named that do not exist.
        CommandFailed: when there is nothing to measure.
    """
    nodes = await _nodes(session, wish.names)
    topology = await session.find(TOPOLOGIES, "default") or DEFAULT_TOPOLOGY
    rails = wish.rails or tuple(topology.spec.rails)
    names, leaves = [node.metadata.name for node in nodes], _leaves(nodes, topology)
    answers: Mapping[str, NodeAnswer] = {}
    for number in range(1 + AGAIN):
        answers = best(answers, await _pass(session, wish, names, rails))
        checks, verdict = summed_up(names, answers, leaves)
        # What passes by chance, such as another program's load, is not slow each time.
        if verdict.kind in ("healthy", "silent", "unknown") or number == AGAIN:
            break
        if number and any(m.problem for one in answers.values() for m in one.measured):
            break
    checks += [one for node in sorted(answers) for one in answers[node].checks]
    if verdict.kind == "healthy" and any(one.state == "fail" for one in checks):
        verdict = of_checks(checks)
    await _tell_health(session, names, checks)
    return tree(checks, verdict, answers)


async def _pass(
    session: Session, wish: Wish, names: list[str], rails: tuple[Rail, ...]
) -> Mapping[str, NodeAnswer]:
    """Have all measure once."""
    check = await session.client.create(
        NETWORK_CHECKS,
        {
            "metadata": {"name": f"check-{secrets.token_hex(4)}"},
            "spec": {
                "nodes": names,
                "token": secrets.token_hex(24),
                "rails": to_builtins(list(rails)),
                "seconds": wish.seconds,
                "peers": wish.peers,
                "across": wish.across,
                "patience": wish.patience,
            },
        },
    )
    try:
        return await _answers(session, check)
    finally:
        await session.client.delete(NETWORK_CHECKS, check.metadata.name)


def tree(checks: list[Check], verdict: Verdict, answers: Mapping[str, NodeAnswer]) -> Json:
    """Return what ``-o json`` shows: every field, also those that say nothing."""
    matrix = [
        {"from": node, "to": one["peer"], **{k: v for k, v in one.items() if k != "peer"}}
        for node in sorted(answers)
        for one in to_builtins(answers[node].measured)
    ]
    return {"checks": whole(checks), "verdict": filled(verdict), "matrix": matrix}


def whole(checks: list[Check]) -> list[Json]:
    """Return the checks with all of their fields."""
    names = ("group", "state", "evidence", "fix", "place")
    return [{name: getattr(one, name) for name in names} for one in checks]


def filled(verdict: Verdict) -> Json:
    """Return the verdict with all of its fields."""
    return {"kind": verdict.kind, "place": verdict.place, "evidence": verdict.evidence}


async def _nodes(session: Session, names: tuple[str, ...]) -> list[Node]:
    there = {node.metadata.name: node for node in (await session.client.list(NODES)).items}
    jobs = [name.partition("/")[2] for name in names if name.startswith("job/")]
    wanted = {name for name in names if not name.startswith("job/")}
    for job in jobs:
        pods = await session.client.list(
            PODS, session.namespace, label_selector=f"{JOB_LABEL}={job}"
        )
        on = {pod.spec.node_name for pod in pods.items if pod.spec.node_name}
        if not on:
            raise CommandFailed(f"no pod of the job {job!r} is on a node")
        wanted |= on
    for name in sorted(wanted - set(there)):
        raise BadInput(f"there is no node {name!r}; `lockstep list nodes` shows what there is")
    found = [there[name] for name in sorted(wanted or there)]
    if len(found) < 2:
        raise CommandFailed(f"{len(found)} nodes; it takes two to measure between them")
    return found


def _leaves(nodes: list[Node], topology: Topology) -> dict[str, str]:
    """Return by node its domain in the narrowest tier around nodes."""
    around = [tier for tier in topology.spec.tiers if tier.label != "kubernetes.io/hostname"]
    if not around:
        return {}
    label = around[-1].label
    return {
        node.metadata.name: node.metadata.labels[label]
        for node in nodes
        if label in node.metadata.labels
    }


async def _answers(session: Session, check: NetworkCheck) -> Mapping[str, NodeAnswer]:
    """Wait for the answers; of a node that stays silent there is none in the end."""
    spec = check.spec
    quiet_for = 3 * spec.patience
    last, changed = -1, time.monotonic()
    meetings = len(sampled(len(spec.nodes), spec.peers, {}))
    end = time.monotonic() + quiet_for + 8 * meetings * (2 * spec.seconds + spec.patience)
    while True:
        now = await session.client.get(NETWORK_CHECKS, check.metadata.name)
        done = sum(one.state == "done" for one in now.status.nodes.values())
        if done == len(spec.nodes):
            return now.status.nodes
        if done != last:
            last, changed = done, time.monotonic()
        began = any(one.state == "ready" for one in now.status.nodes.values())
        limit = quiet_for + (meetings * (4 * spec.seconds + 1) if began else 0)
        if time.monotonic() > min(changed + limit, end):
            return now.status.nodes
        await asyncio.sleep(EVERY)


async def _tell_health(session: Session, nodes: list[str], checks: list[Check]) -> None:
    """Write what was found into the NodeHealth of the nodes that it is about."""
    for node in nodes:
        fresh = [
            Finding(
                cause=f"{NETWORK_CAUSE}{one.evidence.partition(':')[0]} {one.place}"[:200],
                class_="network",
                action="observe",
                confidence=0.8,
                evidence=one.evidence[:512],
            )
            for one in checks
            if one.state == "fail" and node in one.place.replace(",", "/").split("/")
        ]
        try:
            await _renew(session, node, fresh)
        except ApiError as error:
            note(f"the NodeHealth of {node} does not tell it: {error}")


async def _renew(session: Session, node: str, fresh: list[Finding]) -> None:
    from lockstep.api.node_health import NODE_HEALTHS
    from lockstep.api.timestamp import show
    from lockstep.health.core.findings import merged

    if not fresh:
        try:
            there = await session.client.get(NODE_HEALTHS, node)
        except NotFound:
            return
    else:
        there = await load(session.client, node)
    # What an earlier check found and this one did not is over.
    causes = {one.cause for one in fresh}
    kept = [
        one
        for one in there.spec.findings
        if not one.cause.startswith(NETWORK_CAUSE) or one.cause in causes
    ]
    await put(session.client, there, merged(kept, fresh, show(time.time())), there.spec.read)
