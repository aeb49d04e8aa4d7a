"""A node that is to come back measures its network with two healthy ones, and they with each other.

The agents do the measuring, as they do for ``lockstep network check``; here a NetworkCheck is made,
looked at, and taken away. It is named after the node and the time it was asked for, so that a
controller that starts in between goes on with it.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.api import names, timestamp
from lockstep.api.core import Node
from lockstep.api.network import NETWORK_CHECKS, NetworkCheck, NodeAnswer
from lockstep.api.node_health import CheckResult, NodeHealth
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.kube.informer import Informer

PARTNERS: Final = 2
SECONDS: Final = 0.2
PATIENCE: Final = 20.0
GIVEN_UP: Final = 60.0
"""Seconds after which nodes that have not answered are not waited for any more."""
SLOW: Final = 0.6
"""Share of what the partners reach between them below which the node's own rate is too low."""
NAME: Final = "network"


@dataclass
class Pairs:
    """The measurements of nodes that are to come back."""

    client: Client
    nodes: Informer[Node]

    async def result(self, health: NodeHealth) -> CheckResult | None:
        """Return what the node measured since it was asked; None while it has not.

        Raises:
            ApiError: when the server cannot be used now.
        """
        asked, node = health.status.asked, health.metadata.name
        if not asked:
            return None
        others = partners(self.nodes, node)
        if not others:
            return CheckResult(name=NAME, state="skipped", evidence="no other node is well")
        digest = hashlib.sha256(f"{node} {asked}".encode()).hexdigest()[:12]
        check = await self._check(f"return-{digest}", [node, *others])
        made = timestamp.read(check.metadata.creation_timestamp or "") or 0.0
        answers = check.status.nodes
        done = all(answers.get(one, NodeAnswer()).state == "done" for one in check.spec.nodes)
        if not done and time.time() - made < GIVEN_UP:
            return None
        await self.client.delete(NETWORK_CHECKS, check.metadata.name, uid=check.metadata.uid)
        return judged(node, answers)

    async def _check(self, name: str, nodes: list[str]) -> NetworkCheck:
        try:
            return await self.client.get(NETWORK_CHECKS, name)
        except NotFound:
            pass
        try:
            topology = await self.client.get(TOPOLOGIES, "default")
        except NotFound:
            topology = DEFAULT_TOPOLOGY
        spec = {
            "nodes": nodes,
            "token": secrets.token_hex(24),
            "rails": to_builtins(topology.spec.rails),
            "seconds": SECONDS,
            "patience": PATIENCE,
        }
        try:
            return await self.client.create(
                NETWORK_CHECKS, {"metadata": {"name": name}, "spec": spec}
            )
        except AlreadyExists:
            return await self.client.get(NETWORK_CHECKS, name)


def is_well(node: Node) -> bool:
    """Whether *node* is ready, and nothing is known to be wrong with it."""
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    return ready and all(taint.key != names.UNHEALTHY_TAINT for taint in node.spec.taints)


def partners(nodes: Iterable[Node], node: str) -> list[str]:
    """Return two nodes that are well, to measure with: always the same for a node."""
    well = [
        one.metadata.name
        for one in nodes
        if one.metadata.name != node
        and one.metadata.labels.get(names.NODE_KIND_LABEL) != "simulated"
        and is_well(one)
    ]
    order = sorted(well, key=lambda one: hashlib.sha256(f"{node} {one}".encode()).digest())
    return order[:PARTNERS]


def judged(node: str, answers: Mapping[str, NodeAnswer]) -> CheckResult:
    """Return whether *node* reaches the others, at the rate that they reach between them."""
    flows = [
        (one.rail, from_, one.peer, min(one.rate, one.back), one.problem)
        for from_, answer in answers.items()
        for one in answer.measured
    ]
    own = [flow for flow in flows if node in (flow[1], flow[2])]
    usual = {flow[0]: flow[3] for flow in flows if node not in (flow[1], flow[2]) and not flow[4]}
    if answers.get(node, NodeAnswer()).state != "done":
        return CheckResult(
            name=NAME, state="skipped", evidence="no agent of the node measured within a minute"
        )
    if not own:
        why = answers[node].problem or "no rail to measure on"
        return CheckResult(name=NAME, state="skipped", evidence=why[:512])
    bad = [
        (rail, f"{rail}: {from_} to {peer}: {problem or f'{rate:.2f} Gb/s of {usual[rail]:.2f}'}")
        for rail, from_, peer, rate, problem in own
        if problem or rate < SLOW * usual.get(rail, 0.0)
    ]
    met, ill = Counter(flow[0] for flow in own), Counter(rail for rail, _ in bad)
    # One peer that does not answer is its own fault; a rail that is bad to most is the node's.
    if any(2 * count > met[rail] for rail, count in ill.items()):
        words = "; ".join(told for _, told in bad)
        return CheckResult(name=NAME, state="failed", evidence=words[:512])
    best = max(flow[3] for flow in own)
    words = f"{len(own)} pairs measured, up to {best:.2f} Gb/s"
    return CheckResult(name=NAME, state="ok", evidence=words)
