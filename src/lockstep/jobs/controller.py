"""The shell around the core: reads the caches, writes the status, carries out the actions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
    Lease,
    Node,
    Pod,
    Secret,
)
from lockstep.api.gang import GANGS
from lockstep.api.names import JOB_LABEL
from lockstep.api.node_health import Finding, NodeHealth
from lockstep.api.rendezvous import WORLD_SUFFIX
from lockstep.api.resource import Resource
from lockstep.api.roles import launcher_host, service_name
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.health.core.diagnose import with_earlier
from lockstep.health.core.lifecycle import is_lost
from lockstep.jobs import awaited
from lockstep.jobs import conditions as cond
from lockstep.jobs.decide import decide
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import CONFIG_SUFFIX, SSH_SUFFIX, logs_in
from lockstep.jobs.hearing import SILENT_AFTER, Hearing
from lockstep.jobs.job_state import Decision, Seen
from lockstep.jobs.launcher_objects import RIGHTS_SUFFIX
from lockstep.jobs.leaving_nodes import notice_of
from lockstep.jobs.reasons import unstarted, waits
from lockstep.jobs.roster import owns
from lockstep.kube.errors import NotFound
from lockstep.kube.events import last_warning
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Action
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute, execute_all
from lockstep.runtime.own_image import own_image
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.status import write_status

log = logging.getLogger(__name__)

_CATCH_UP: Final = 0.05
_SILENT_AFTER: Final = 5.0
"""Seconds a placed pod may take to start before its events are read."""


@dataclass(frozen=True)
class Caches:
    """What the controller follows."""

    jobs: Informer[TrainingJob]
    pods: Informer[Pod]
    leases: Informer[Lease]
    healths: Informer[NodeHealth]
    nodes: Informer[Node]
    others: Mapping[Resource[Any], Informer[Any]]


@dataclass
class JobController:
    """Brings each job to what its spec says.

    The only memory between two calls, besides the caches, is what the server refused last, which
    version of a job was last written, and when launchers were last heard; losing either costs one
    more request, or some seconds until a silent launcher is noticed.
    """

    writer: Writer
    caches: Caches
    clock: Callable[[], float] = time.time
    _refusals: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    _replaced: dict[Key, str] = field(default_factory=dict)
    _hearing: Hearing = field(default_factory=Hearing)

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the job at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        job = self.caches.jobs.get(*key)
        if job is None:
            self._refusals.pop(key, None)
            self._replaced.pop(key, None)
            return None
        if self._replaced.get(key) == job.metadata.resource_version:
            return _CATCH_UP
        seen = await self._see(job)
        decision = self._with_earlier(job, decide(seen, self.clock()))
        if not await self._holds(seen, decision):
            return _CATCH_UP
        await self._write_status(job, decision)
        refusals = await self._carry_out(job, decision.actions)
        if refusals != self._refusals.get(key, ()):
            self._refusals[key] = refusals
            return 0.0
        return decision.again

    def _with_earlier(self, job: TrainingJob, decision: Decision) -> Decision:
        """Return *decision* with what a job of the same spec says of a verdict that is new."""
        found = decision.status.diagnosis
        if found is None or found.class_ != "user" or found == job.status.diagnosis:
            return decision
        if job.status.diagnosis is not None and job.status.diagnosis.cause == found.cause:
            return replace(
                decision, status=structs.replace(decision.status, diagnosis=job.status.diagnosis)
            )
        meta = job.metadata
        same = (
            one.metadata.name
            for one in self.caches.jobs
            if one.metadata.namespace == meta.namespace
            and one.metadata.uid != meta.uid
            and one.status.phase == "Succeeded"
            and one.spec == job.spec
        )
        verdict = with_earlier(found, next(same, ""))
        return replace(decision, status=structs.replace(decision.status, diagnosis=verdict))

    async def _see(self, job: TrainingJob) -> Seen:
        namespace, name = job.metadata.namespace, job.metadata.name
        others = self.caches.others
        leases = self.caches.leases.by_index(JOB_LABEL, f"{namespace}/{name}")
        self._hearing.listen(leases, self.clock())
        pods = self.caches.pods.by_index(JOB_LABEL, f"{namespace}/{name}")
        lost = self._lost(pods)
        seen = Seen(
            job,
            pods,
            gang=others[GANGS].get(namespace, name),
            service=others[SERVICES].get(namespace, service_name(job)),
            launcher_service=others[SERVICES].get(namespace, launcher_host(job)),
            config_map=others[CONFIG_MAPS].get(namespace, name + CONFIG_SUFFIX),
            secret=await self._secret(job),
            refusals=self._refusals.get((namespace, name), ()),
            world=others[CONFIG_MAPS].get(namespace, name + WORLD_SUFFIX),
            leases={lease.metadata.name: lease for lease in leases},
            silent=self._silent(leases, lost, pods),
            lost=lost,
            going=self._going(pods),
            role=others[ROLES].get(namespace, name + RIGHTS_SUFFIX),
            findings=self._findings(namespace, name),
            binding=others[ROLE_BINDINGS].get(namespace, name + RIGHTS_SUFFIX),
            awaited=awaited.others(self.caches.jobs, job),
            authority=(self.writer.client.config.ca or b"").decode(),
            launcher_image=own_image(),
        )
        placed = cond.since(job.status, cond.PLACED, True)
        if placed is None or self.clock() - placed < _SILENT_AFTER:
            return seen
        silent = [p for p in unstarted(seen.pods) if not waits(p)]
        return replace(seen, warnings=await self._warnings(silent[:1])) if silent else seen

    def _going(self, pods: Iterable[Pod]) -> dict[str, str]:
        """Return the pods whose nodes are tainted because they go away soon, with the taint."""
        found = {}
        for pod in pods:
            node = self.caches.nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
            if node is not None and (key := notice_of(node)):
                found[pod.metadata.name] = key
        return found

    def _lost(self, pods: Iterable[Pod]) -> frozenset[str]:
        """Return the nodes of *pods* that are not Ready and tainted for it."""
        names = {pod.spec.node_name for pod in pods} - {""}
        found = ((name, self.caches.nodes.get("", name)) for name in names)
        return frozenset(name for name, node in found if node is not None and is_lost(node))

    def _silent(
        self, leases: Sequence[Lease], lost: frozenset[str], pods: Iterable[Pod]
    ) -> frozenset[str]:
        """Return whose launchers are silent: by the others, or on a node that is lost."""
        on_lost = {pod.metadata.name for pod in pods if pod.spec.node_name in lost}
        now = self.clock()
        return self._hearing.silent(leases) | {
            lease.metadata.name
            for lease in leases
            if lease.metadata.name in on_lost
            and now - (timestamp.read(lease.spec.renew_time) or now) >= SILENT_AFTER
        }

    def _findings(self, namespace: str, name: str) -> dict[str, list[Finding]]:
        """Return what is wrong with the nodes of a job's pods."""
        pods = self.caches.pods.by_index(JOB_LABEL, f"{namespace}/{name}")
        nodes = {pod.spec.node_name for pod in pods} - {""}
        known = ((node, self.caches.healths.get("", node)) for node in nodes)
        return {node: health.spec.findings for node, health in known if health is not None}

    async def _secret(self, job: TrainingJob) -> Secret | None:
        """Return the job's Secret, where its framework has one.

        It is asked for by its name and not followed: that would take the right to read every
        Secret of the cluster.
        """
        if not logs_in(job, FRAMEWORKS[job.spec.framework]):
            return None
        try:
            return await self.writer.client.get(
                SECRETS, job.metadata.name + SSH_SUFFIX, job.metadata.namespace
            )
        except NotFound:
            return None

    async def _warnings(self, pods: Iterable[Pod]) -> dict[str, str]:
        """Return the latest warning about pods whose own status does not say why they wait."""
        client = self.writer.client
        found = {pod.metadata.name: await last_warning(client, pod.metadata) for pod in pods}
        return {name: said for name, said in found.items() if said}

    async def _holds(self, seen: Seen, decision: Decision) -> bool:
        """Return whether the pods are gone of which the decision says so, and why as far as told.

        Caches of pods and gangs are each in order, but neither waits for the other.
        """
        namespace = seen.job.metadata.namespace
        for name in decision.absent:
            try:
                pod = await self.writer.client.get(PODS, name, namespace)
            except NotFound:
                continue
            if owns(seen.job, pod.metadata):
                return False
        if not decision.absent or seen.gang is None:
            return True
        try:
            gang = await self.writer.client.get(GANGS, seen.gang.metadata.name, namespace)
        except NotFound:
            return True
        return gang.status.preempted == seen.gang.status.preempted

    async def _write_status(self, job: TrainingJob, decision: Decision) -> None:
        client, meta = self.writer.client, job.metadata
        new = await write_status(
            client, TRAINING_JOBS, job, decision.status, phase=decision.status.phase
        )
        if new is None:
            return
        if new.metadata.resource_version != meta.resource_version:
            self._replaced[(meta.namespace, meta.name)] = meta.resource_version
        for note in decision.notes:
            self.writer.tell(TRAINING_JOBS, job, note)

    async def _carry_out(self, job: TrainingJob, actions: Iterable[Action]) -> tuple[str, ...]:
        """Carry out *actions*; return what the server refused, as sentences."""
        meta, client = job.metadata, self.writer.client
        refusals = await execute_all(
            actions, lambda one: execute(client, one, meta.namespace, owner=meta.uid)
        )
        return tuple(str(refusal) for refusal in refusals)
