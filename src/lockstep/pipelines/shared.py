"""What runs share or own beside their steps: locks, limits of locks, claims, pods that may go."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lockstep.api.core import CLAIMS, CONFIG_MAPS, NAMESPACES, PODS, Pod
from lockstep.api.meta import owner_reference
from lockstep.api.pipeline import ENDED, LOCKS_ANNOTATION, PIPELINE_RUNS, PipelineRun
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.pipelines.core.locks import Locks
from lockstep.pipelines.core.record import steps_of
from lockstep.pipelines.core.sweeping import doomed

log = logging.getLogger(__name__)

_OVER: Final = frozenset({"Succeeded", "Failed"})


def restore(locks: Locks, runs: Iterable[PipelineRun], pods: Iterable[Pod]) -> None:
    """Take note of the locks that steps held before a restart.

    Statuses say so, and for steps that were started before their run's status was written, pods.
    """
    over: set[str] = set()
    for run in runs:
        try:
            steps = steps_of(run.status)
        except ValueError:
            continue
        for name, step in steps.items():
            holder = f"{run.metadata.uid}/{name}"
            if step.phase in ENDED:
                over.add(holder)
            elif step.locks:
                locks.restore(holder, step.locks)
    for pod in pods:
        given = pod.metadata.annotations.get(LOCKS_ANNOTATION)
        if not given or pod.status.phase in _OVER:
            continue
        for holder, names in json.loads(given).items():
            if holder not in over:
                locks.restore(holder, names)


async def artefacts_of(client: Client, namespace: str, root: Path | None) -> str:
    """Return the directory below *root* that stands for ``minio://`` in a namespace.

    Pods of any user write to it, and pods of other namespaces do not see it. A namespace of the
    same name that is made later has another one. Empty where the machine has no *root*.

    Raises:
        ApiError: when the namespace cannot be read.
    """
    if root is None:
        return ""
    uid = (await client.get(NAMESPACES, namespace)).metadata.uid
    place = root / namespace / uid
    for one, mode in ((root, 0o700), (place.parent, 0o700), (place, 0o1777)):
        one.mkdir(exist_ok=True)
        one.chmod(mode)
    return str(place)


async def limits(client: Client, run: PipelineRun) -> dict[str, int]:
    """Return the limits of locks that ConfigMaps of the run's namespace hold, by CONFIGMAP/KEY."""
    wanted = {
        lock.limit_from
        for template in run.spec.templates.values()
        for lock in template.locks
        if lock.limit_from
    }
    found: dict[str, int] = {}
    for one in wanted:
        name, _, key = one.partition("/")
        try:
            held = await client.get(CONFIG_MAPS, name, run.metadata.namespace)
        except NotFound:
            continue
        if held.data.get(key, "").strip().isdigit():
            found[one] = int(held.data[key])
    return found


async def claim(client: Client, run: PipelineRun) -> None:
    """Make the claims of *run* that are not there; they go with it."""
    meta = run.metadata
    for one in run.spec.claims:
        about = one.get("metadata") or {}
        own: dict[str, Any] = {
            "labels": about.get("labels") or {},
            "annotations": about.get("annotations") or {},
            "name": f"{meta.name}-{about.get('name', '')}",
            "ownerReferences": [owner_reference(run, PIPELINE_RUNS)],
        }
        try:
            body = {"metadata": own, "spec": one.get("spec") or {}}
            await client.create(CLAIMS, body, meta.namespace)
        except AlreadyExists:
            log.debug("the claim %s is there already", own["name"])


async def sweep(client: Client, run: PipelineRun, pods: Iterable[Pod], now: float) -> float | None:
    """Delete the pods of *run* that are wanted no longer; return when to look again."""
    if run.spec.sweep is None:
        return None
    names, again = doomed(run, steps_of(run.status), pods, now)
    for name in names:
        try:
            await client.delete(PODS, name, run.metadata.namespace)
        except NotFound:
            log.debug("pod %s is gone already", name)
    return again
