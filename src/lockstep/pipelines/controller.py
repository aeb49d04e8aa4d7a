"""The shell around runs: feeds their engines, carries out what they say, writes statuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from lockstep.api import duration, timestamp
from lockstep.api.core import Pod
from lockstep.api.pipeline import PIPELINE_RUNS, PipelineRun, PipelineRunSpec
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, to_builtins
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.pipelines import shared
from lockstep.pipelines.carry import Carrier, step_of
from lockstep.pipelines.core import record, results
from lockstep.pipelines.core.check import problems
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.kept import key_of
from lockstep.pipelines.core.locks import Locks
from lockstep.pipelines.core.nodes import Node
from lockstep.pipelines.core.told import Kept, Run, Seen
from lockstep.pipelines.memory import Memory, longest_of
from lockstep.runtime.actions import Delete
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute
from lockstep.runtime.status import patch_status

RUN_INDEX: Final = "pipeline-run"
"""Pods and objects of steps by ``NAMESPACE/RUN``."""
LOCAL_ROOT: Final = "minio://lockstep/runs"
"""Where artefacts go on a machine whose controllers have a directory for them."""
_ENDED: Final = frozenset({"Succeeded", "Failed", "Stopped"})
_BREATH: Final = 0.2
"""Seconds between two writes of a status that changes fast."""
_ASK_AGAIN: Final = 0.5
"""Seconds until a step that waits for a lock of another run asks again."""
_BUSY: Final = 20
"""Changed steps from which on a status is one that changes fast."""


@dataclass(eq=False)
class Live:
    """A run that goes on: its engine, and what happened since it was looked at."""

    uid: str
    retries: int
    engine: Engine
    spec: PipelineRunSpec
    dirty: set[tuple[Resource[Any], str]] = field(default_factory=set)
    gone: dict[str, Pod] = field(default_factory=dict)
    """Pods as they were seen last before they were deleted, by name."""
    written: Json = field(default_factory=dict)
    unkept: set[str] = field(default_factory=set)
    """Steps that changed and whose results may be to be kept."""
    changed: set[str] = field(default_factory=set)
    wrote_at: float = 0.0
    compressed: bool = False


@dataclass
class PipelineController:
    """Brings each run to its end."""

    client: Client
    runs: Informer[PipelineRun]
    pods: Informer[Pod]
    objects: Mapping[Resource[Any], Informer[Any]]
    memory: Memory
    recorder: Recorder
    clock: Callable[[], float] = time.time
    artefacts: Path | None = None
    """Directory of the machine for artefacts of runs that name no store."""
    _live: dict[Key, Live] = field(default_factory=dict)
    _locks: Locks = field(default_factory=Locks)
    _restored: bool = False

    def note(self, resource: Resource[Any], change: Change[Any], key: Key) -> None:
        """Remember that what a step made has changed."""
        live = self._live.get(key)
        if live is None:
            return
        name = change.object.metadata.name
        live.dirty.add((resource, name))
        if change.new is None and resource is self.pods.resource:
            live.gone[name] = change.object

    async def reconcile(self, key: Key) -> float | None:
        """Take the next steps of the run at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        run = self.runs.get(*key)
        if run is None or run.metadata.deletion_timestamp is not None:
            self._forget(key)
            return None
        if run.status.phase in _ENDED and run.spec.retries <= run.status.retries:
            self._forget(key)
            times = [await self._sweep(run), await self._expire(run)]
            return min((t for t in times if t is not None), default=None)
        try:
            live = await self._wake(key, run)
            if live is None:
                return None
            return await self._go_on(key, run, live)
        except Exception:
            # What the engine said may be half done: the next call builds it anew.
            self._live.pop(key, None)
            raise

    def _forget(self, key: Key) -> None:
        live = self._live.pop(key, None)
        if live is not None:
            self._locks.drop(live.uid)

    async def _sweep(self, run: PipelineRun) -> float | None:
        where = f"{run.metadata.namespace}/{run.metadata.name}"
        pods = self.pods.by_index(RUN_INDEX, where)
        return await shared.sweep(self.client, run, pods, self.clock())

    async def _wake(self, key: Key, run: PipelineRun) -> Live | None:
        live = self._live.get(key)
        if live and live.uid == run.metadata.uid and live.retries == run.spec.retries:
            return live
        spec = self._with_root(run.spec)
        wrong = problems(spec)
        if wrong:
            await self._refuse(run, "; ".join(str(one) for one in wrong[:5]))
            return None
        meta = run.metadata
        created = meta.creation_timestamp or ""
        kept_in = await shared.artefacts_of(self.client, meta.namespace, self.artefacts)
        about = Run(meta.name, meta.namespace, meta.uid, created, kept_in)
        try:
            known = record.records(run)
        except ValueError as error:
            await self._refuse(run, str(error))
            return None

        def kept(found: str, node: Node) -> Kept | None:
            longest = longest_of(run.spec, node.task.keep)
            return self.memory.find(meta.namespace, found, longest, self.clock())

        await shared.claim(self.client, run)
        limits = await shared.limits(self.client, run)
        if not self._restored:
            shared.restore(self._locks, self.runs, self.pods)
            self._restored = True
        more: Json = {"key_of": key_of, "kept": kept, "locks": self._locks, "limits": limits}
        engine = Engine(about, spec, self.clock(), records=known, **more)
        live = self._live[key] = Live(meta.uid, run.spec.retries, engine, run.spec)
        where = f"{meta.namespace}/{meta.name}"
        for resource, informer in ((self.pods.resource, self.pods), *self.objects.items()):
            for one in informer.by_index(RUN_INDEX, where):
                live.dirty.add((resource, one.metadata.name))
        return live

    def _with_root(self, spec: PipelineRunSpec) -> PipelineRunSpec:
        """Return *spec*, with this machine's store where it names none."""
        return structs.replace(spec, root=spec.root or (LOCAL_ROOT if self.artefacts else ""))

    async def _go_on(self, key: Key, run: PipelineRun, live: Live) -> float | None:
        engine, now = live.engine, self.clock()
        self._apply_wishes(run, live, now)
        self._observe(key, live, now)
        engine.tick(now)
        carrier = Carrier(self.client, self.pods, self.objects, run, engine, self.clock)
        live.changed |= engine.changed
        live.unkept |= engine.changed
        engine.changed.clear()
        while actions := engine.take():
            await carrier.carry_out(actions)
            live.changed |= engine.changed
            live.unkept |= engine.changed
            engine.changed.clear()
        await self._keep(run, live)
        wait = await self._write(run, live)
        due = engine.due()
        blocked = _ASK_AGAIN if engine.blocked and not engine.suspended else None
        swept = await self._sweep(run)
        times = [
            wait,
            blocked,
            swept,
            None if due is None else max(0.0, due - self.clock()),
            self._left(run),
        ]
        return min((t for t in times if t is not None), default=None)

    def _apply_wishes(self, run: PipelineRun, live: Live, now: float) -> None:
        """Tell the engine what was changed of the run while it goes on."""
        engine, spec = live.engine, run.spec
        if spec.desired == "Stopped":
            engine.stop("the run was told to stop", now)
        elif engine.suspended != (spec.desired == "Suspended"):
            engine.suspend(spec.desired == "Suspended", now)
        if spec.resumed != live.spec.resumed:
            engine.resume(frozenset(spec.resumed), now)
        live.spec = spec
        left = self._left(run)
        if left is not None and left <= 0:
            engine.stop(f"the run lasted longer than {spec.timeout}", now)

    def _left(self, run: PipelineRun) -> float | None:
        if run.spec.timeout is None or run.status.phase in _ENDED:
            return None
        began = run.status.started_at or run.metadata.creation_timestamp
        since = timestamp.parse(began) if began else self.clock()
        left = since + duration.parse(run.spec.timeout) - self.clock()
        live = self._live.get((run.metadata.namespace, run.metadata.name))
        return None if live is not None and live.engine.stopping and left <= 0 else left

    def _observe(self, key: Key, live: Live, now: float) -> None:
        dirty, live.dirty = live.dirty, set()
        gone, live.gone = live.gone, {}
        for resource, name in dirty:
            if resource is self.pods.resource:
                self._see_pod(key[0], name, live, gone.get(name), now)
            else:
                self._see_object(resource, key[0], name, live, now)

    def _see_pod(self, space: str, name: str, live: Live, last: Pod | None, now: float) -> None:
        pod = self.pods.get(space, name)
        found = pod or last
        if found is None:
            return
        place = step_of(found)
        node = live.engine.nodes.get(place[0])
        if node is None or node.template.pod is None:
            return
        seen = results.of_pod(found, has_outputs=bool(node.template.pod.outputs))
        if pod is None and seen.phase in ("Pending", "Running"):
            seen = Seen("Lost", "its pod was deleted")
        live.engine.observe(*place, seen, now)

    def _see_object(
        self, resource: Resource[Any], space: str, name: str, live: Live, now: float
    ) -> None:
        from lockstep.pipelines.core.objects import KINDS, judge

        found = self.objects[resource].get(space, name)
        for node in [*live.engine.active]:
            if node.object != f"{resource.kind}/{name}":
                continue
            if found is None:
                seen = Seen("Failed", f"{node.object} was deleted")
            else:
                kind = next(one for one in KINDS if one.resource == resource)
                seen = judge(kind, node, to_builtins(found))
            live.engine.observe(node.id, node.attempt, seen, now)

    async def _keep(self, run: PipelineRun, live: Live) -> None:
        """Keep the results of steps that have succeeded."""
        names, live.unkept = live.unkept, set()
        for name in names:
            node = live.engine.nodes[name]
            fresh = node.phase == "Succeeded" and node.key and not node.kept_from
            if fresh and run.spec.keep_results:
                await self.memory.keep(run, node, self.clock())

    async def _write(self, run: PipelineRun, live: Live) -> float | None:
        engine, now = live.engine, self.clock()
        root = engine.root
        over = root.over
        if len(live.changed) > _BUSY and not over and now - live.wrote_at < _BREATH:
            return _BREATH
        body = self._summary(run, live)
        live.compressed = len(engine.nodes) > record.PLAIN
        if live.changed:
            body |= record.patch(engine, live.changed, compressed=live.compressed)
        elif body == live.written:
            return None
        # The identity makes the server refuse it where another run has taken the name.
        await patch_status(self.client, PIPELINE_RUNS, run.metadata, body)
        live.written = self._summary(run, live)
        live.changed, live.wrote_at = set(), now
        if over:
            good = root.phase == "Succeeded"
            self.recorder.event(
                run,
                "Normal" if good else "Warning",
                root.phase,
                root.message or "every step is over",
            )
        return None

    def _summary(self, run: PipelineRun, live: Live) -> Json:
        engine, root = live.engine, live.engine.root
        phase = "Suspended" if engine.suspended and not root.over else root.phase
        body: Json = {
            "phase": "Running" if phase in ("Waiting", "Pending") else phase,
            "message": root.message[:2000] or None,
            "startedAt": run.status.started_at or timestamp.show(root.started or self.clock()),
            "progress": f"{engine.over}/{len(engine.nodes)}",
            "retries": run.spec.retries,
            "completionTime": None,
        }
        if root.over:
            body["completionTime"] = timestamp.show(self.clock())
            body["outputs"] = root.outputs or None
        return body

    async def _refuse(self, run: PipelineRun, why: str) -> None:
        now = timestamp.show(self.clock())
        body = {
            "phase": "Failed",
            "message": f"refused: {why}"[:2000],
            "startedAt": now,
            "completionTime": now,
            "retries": run.spec.retries,
        }
        await patch_status(self.client, PIPELINE_RUNS, run.metadata, body)
        self.recorder.event(run, "Warning", "Refused", why[:1000])

    async def _expire(self, run: PipelineRun) -> float | None:
        if run.spec.expires_after is None or run.status.completion_time is None:
            return None
        end = timestamp.parse(run.status.completion_time)
        left = end + duration.parse(run.spec.expires_after) - self.clock()
        if left > 0:
            return left
        await execute(self.client, Delete.of(PIPELINE_RUNS, run.metadata))
        return None
