"""The shell around the core: reads the caches, carries out the actions, writes the status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.compat.fluid.objects import DATASETS
from lockstep.compat.kserve.objects import (
    ANALYSIS_TEMPLATES,
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    SERVING_RUNTIMES,
    InferenceService,
)
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.runtimes import known
from lockstep.compat.kserve.scaling import Scaling
from lockstep.compat.kserve.translate import Component
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key
from lockstep.runtime.reconciler import Writer
from lockstep.serve.core import pods, release
from lockstep.serve.core.autoscale import Autoscaler, Policy, policy
from lockstep.serve.core.decide import decide, translate
from lockstep.serve.core.gangs import is_worker
from lockstep.serve.core.load import Meter, alive
from lockstep.serve.core.metrics import Pace, at_least, wanted
from lockstep.serve.core.models import MODEL_LABEL
from lockstep.serve.core.named_models import with_model
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.surroundings import peers_of
from lockstep.serve.readings import Reading, Readings, answer

ScaleKey = tuple[str, str, str]
"""Namespace, service and component."""
TICK: Final = 1.0
"""Seconds between two looks at the load of a service that has replicas."""
SCHEDULE_TICK: Final = 20.0
"""The same for one at zero that a schedule wakes."""


@dataclass
class Scale:
    """What is remembered of one service's load; losing it delays the next shrinking."""

    autoscaler: Autoscaler
    meter: Meter = field(default_factory=Meter)
    desired: int | None = None
    pace: Pace = field(default_factory=Pace)


@dataclass
class ServingController:
    """Brings each service to what its spec says and its load needs."""

    writer: Writer
    caches: Mapping[Resource[Any], Informer[Any]]
    readings: Readings = field(default_factory=Readings)
    cached: bool = False
    """Whether models come as Datasets that nodes cache."""
    clock: Callable[[], float] = time.time
    _asked: dict[tuple[Key, str, int, str], asyncio.Task[release.Answer]] = field(
        default_factory=dict
    )
    _scales: dict[ScaleKey, Scale] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the service at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        seen = self._see(key)
        if seen is None or seen.service.metadata.deletion_timestamp is not None:
            for name in ("predictor", "transformer"):
                self._scales.pop((*key, name), None)
                self.readings.forget((*key, name))
            return None
        now = self.clock()
        component = translate(seen)
        count, transformers = 0, 0
        if not isinstance(component, Problem):
            front = component.transformer
            behind = seen.predictor(transformed=front is not None)
            count = self._wanted((*key, "predictor"), behind, component, now)
            if front is not None:
                view = seen.of("transformer")
                transformers = self._wanted((*key, "transformer"), view, front, now)
        decision = decide(
            seen,
            component,
            count,
            now,
            transformers=transformers,
            unread=self._unread(key, component),
            answers=self._answers(key, seen, component, now),
        )
        await self.writer.carry_out(INFERENCE_SERVICES, seen.service, decision)
        scheduled = not isinstance(component, Problem) and bool(component.scaling.schedule)
        if scheduled and not seen.pods:
            return SCHEDULE_TICK
        return TICK if seen.pods or count or transformers else None

    def _answers(
        self, key: Key, seen: Seen, component: Component | Problem, now: float
    ) -> dict[str, release.Answer]:
        """Return what queries of a release said that were due; ask those that are due now."""
        told = seen.service.status.components.get("predictor")
        if isinstance(component, Problem) or told is None or not told.release:
            return {}
        state = release.recorded(told.release, str(told.release.get("revision", "")))
        found: dict[str, release.Answer] = {}
        plan = release.steps(component.annotations, seen.templates)
        for one in release.asked(plan, state, now):
            text = one.query.replace(release.REVISION, state.revision)
            name = (key, state.revision, state.step, one.name)
            task = self._asked.get(name)
            if task is None:
                self._asked[name] = asyncio.ensure_future(answer(one.address, text))
            elif task.done():
                found[one.name] = task.result()
                del self._asked[name]
        return found

    def _unread(self, key: Key, component: Component | Problem) -> str:
        """Return which metrics of the predictor cannot be read, and why; empty where all can."""
        if isinstance(component, Problem) or not component.scaling.metrics:
            return ""
        troubles = self.readings.known((*key, "predictor")).troubles
        return "; ".join(f"{one.field}: {text}" for one, text in troubles.items())

    def _see(self, key: Key) -> Seen | None:
        namespace, name = key
        service = self.caches[INFERENCE_SERVICES].get(namespace, name)
        if service is None:
            return None
        here = [r for r in self.caches[SERVING_RUNTIMES] if r.metadata.namespace == namespace]
        owned = {res: self._owned(res, service) for res in (PODS, CONTROLLER_REVISIONS, GANGS)}
        return Seen(
            with_model(service, self.caches[MODEL_VERSIONS]),
            known(here, self.caches[CLUSTER_SERVING_RUNTIMES]),
            owned[CONTROLLER_REVISIONS],
            owned[PODS],
            route=self.caches[ROUTES].get(namespace, name),
            name=self.caches[SERVICES].get(namespace, name),
            routers=alive(self.caches[ROUTERS], self.clock()),
            behind=self.caches[ROUTES].get(namespace, f"{name}-predictor"),
            behind_name=self.caches[SERVICES].get(namespace, f"{name}-predictor"),
            gangs=owned[GANGS],
            templates={
                one.metadata.name: one.spec
                for one in self.caches[ANALYSIS_TEMPLATES]
                if one.metadata.namespace == namespace
            },
            peers=self.caches[SERVICES].get(namespace, peers_of(name)),
            cached=self.cached,
            datasets={
                one.metadata.name: one
                for one in self.caches[DATASETS].by_index(MODEL_LABEL, namespace)
            },
            local_models=[
                one
                for res in (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
                for one in self.caches[res]
                if one.metadata.namespace in ("", namespace)
            ],
        )

    def _owned(self, res: Resource[Any], service: InferenceService) -> list[Any]:
        """Return the objects of a kind that a service owns."""
        meta = service.metadata
        labelled = self.caches[res].by_index(ROUTE_LABEL, f"{meta.namespace}/{meta.name}")
        return [
            one
            for one in labelled
            if any(owner.uid == meta.uid for owner in one.metadata.owner_references)
        ]

    def _wanted(self, key: ScaleKey, seen: Seen, component: Component, now: float) -> int:
        """Return how many replicas the load of a component needs."""
        scaling = component.scaling
        asked = policy(
            component.annotations,
            minimum=scaling.minimum,
            maximum=scaling.maximum,
            metric=scaling.metric or "concurrency",
            target=scaling.target,
            concurrency=component.concurrency,
        )
        scale = self._scales.setdefault(key, Scale(Autoscaler(since=now)))
        held = any(load.held for load in seen.loads.values())
        there = [pod for pod in seen.pods if not (pods.going(pod) or is_worker(pod))]
        if scale.desired is None:
            scale.desired = (
                len(there) if seen.service.status.components.get(key[2]) else max(1, asked.minimum)
            )
        self._measure(scale, seen, scaling.metric, asked, now)
        scheduled = at_least(scaling.schedule, now)
        least = max(asked.minimum, scheduled)
        if scale.desired == 0 and not held and least == 0:
            return 0
        if scale.desired == 0:
            # Before the first request it was idle: the wait for the next zero begins now.
            scale.autoscaler = Autoscaler(since=now)
        ready = sum(pods.ready(pod) for pod in there)
        if ready == 0:
            # A service that no client could use yet was not idle.
            scale.autoscaler.idle_since = None
        by_load = scale.autoscaler.desired(now, ready, asked)
        if scaling.metrics:
            up = [pod for pod in there if pods.ready(pod)]
            reading = self.readings.get(key, scaling.metrics, up, component.port)
            if by_load:
                by_load = _by_metrics(scale, scaling, reading, len(up), now=now, by_load=by_load)
        scale.desired = max(by_load, 1 if held else 0, least)
        if asked.maximum:
            scale.desired = min(scale.desired, max(asked.maximum, scheduled))
        return scale.desired

    @staticmethod
    def _measure(scale: Scale, seen: Seen, metric: str, asked: Policy, now: float) -> None:
        if scale.meter.at is not None and now - scale.meter.at < TICK * 0.9:
            return
        concurrency, rps = scale.meter.read(seen.loads, now)
        scale.autoscaler.record(now, rps if metric == "rps" else concurrency, asked)


def _by_metrics(
    scale: Scale, scaling: Scaling, reading: Reading, up: int, *, now: float, by_load: int
) -> int:
    """Return how many replicas metrics and load ask for: the largest, no faster than allowed.

    *up* of them answer. A metric that cannot be read asks for as many as there are.
    """
    current = scale.desired or up
    asked = [by_load] if scaling.metric else [1]
    for metric in scaling.metrics:
        value = reading.values.get(metric)
        asked.append(current if value is None else wanted(metric, value, max(1, up)))
    target = scale.pace.paced(now, current, max(asked), scaling.behavior)
    scale.pace.note(now, current, target)
    return max(1, target)
