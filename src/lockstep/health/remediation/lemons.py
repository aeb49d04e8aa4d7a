"""Counts failed jobs against the nodes that their diagnoses name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from lockstep.api import names
from lockstep.api.core import NODES, Node
from lockstep.api.health_policy import HEALTH_POLICIES, HealthPolicy
from lockstep.api.node_health import NODE_HEALTHS, Finding, NodeHealth
from lockstep.api.timestamp import show
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.health.core.findings import merged
from lockstep.health.core.lemons import blamed, counted
from lockstep.health.core.policy import chosen
from lockstep.health.remediation.pairs import is_well
from lockstep.health.writing import load, put
from lockstep.kube.client import Client
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager


def add_lemons(manager: Manager) -> None:
    """Count failures of jobs while *manager* leads."""
    jobs = manager.informer(TRAINING_JOBS)
    shell = Lemons(
        manager.client,
        jobs,
        manager.informer(NODE_HEALTHS),
        manager.informer(HEALTH_POLICIES),
        manager.informer(NODES),
    )
    manager.add(Controller("lemons", shell.reconcile).follow(jobs))


@dataclass
class Lemons:
    """Notes each job once for each node; what is noted is in the NodeHealth alone."""

    client: Client
    jobs: Informer[TrainingJob]
    healths: Informer[NodeHealth]
    policies: Informer[HealthPolicy]
    nodes: Informer[Node]
    clock: Callable[[], float] = time.time
    _noted: set[Any] = field(default_factory=set)

    async def reconcile(self, key: Key) -> float | None:
        """Count the job at *key* against the node that its diagnosis names, if it names one.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        job = self.jobs.get(*key)
        verdict = job.status.diagnosis if job is not None else None
        failed = job is not None and (job.status.restarts or job.status.phase == "Failed")
        if job is None or verdict is None or not failed or len(verdict.place.nodes) != 1:
            return None
        (name,) = verdict.place.nodes
        if (mark := (job.metadata.uid, name)) in self._noted:
            return None
        node = self.nodes.get("", name)
        policy = chosen(self.policies, node.metadata.labels if node is not None else {})
        cached = self.healths.get("", name)
        findings: list[Finding] = cached.spec.findings if cached is not None else []
        blame = blamed(verdict, findings)
        if blame is None:
            return None
        try:
            there = await load(self.client, name)
        except NotFound:
            return None
        title = f"{job.metadata.namespace}/{job.metadata.name}"
        # On the only node each failed job has failed: that says nothing of the node.
        most = policy.lemon if has_peer(name, self.nodes) else 0
        fresh = counted(there.spec.findings, blame, title, most)
        now = show(self.clock())
        try:
            if all(one.evidence != fresh.evidence for one in there.spec.findings):
                found = merged(there.spec.findings, [fresh], now)
                await put(self.client, there, found, there.spec.read)
        except Conflict:
            return 0.1
        self._noted.add(mark)
        return None


def has_peer(name: str, nodes: Iterable[Node]) -> bool:
    """Whether another node of the kind of *name* takes pods: only then can a node be told apart."""
    there = {one.metadata.name: one for one in nodes}
    kinds = {each: one.metadata.labels.get(names.NODE_KIND_LABEL) for each, one in there.items()}
    return any(
        each != name
        and kinds[each] == kinds.get(name)
        and not one.spec.unschedulable
        and is_well(one)
        for each, one in there.items()
    )
