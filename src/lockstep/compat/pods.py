"""Pod templates of dialects as templates of a role."""

from __future__ import annotations

import copy
from typing import Final

from lockstep.api.names import SCHEDULER_NAME
from lockstep.api.wire import Json
from lockstep.compat.admission import within_limits
from lockstep.compat.translation import Refused

_SCHEDULERS: Final = ("", "default-scheduler", SCHEDULER_NAME, "kai-scheduler")
LOCAL_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_KAI_QUEUES: Final = ("kai.scheduler/queue", "runai/queue")


def template(given: Json, at: str, *, main: str = "", schedulers: tuple[str, ...] = ()) -> Json:
    """Return the pod template *given* at the field *at* as that of a role.

    The container called *main* comes first; *schedulers* are names for which ours stands in.

    Raises:
        Refused: when it has no containers, none called *main*, or names another scheduler.
    """
    found = copy.deepcopy(given)
    spec = found.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list) or not containers:
        raise Refused(f"{at}.spec.containers", containers, "at least one container is needed")
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or not container.get("name"):
            raise Refused(f"{at}.spec.containers[{index}].name", None, "a name is needed")
    within_limits(spec, f"{at}.spec")
    if main:
        first = [c for c in containers if c["name"] == main]
        if not first:
            names = ", ".join(c["name"] for c in containers)
            raise Refused(f"{at}.spec.containers", names, f"one must be called {main}")
        spec["containers"] = [*first, *(c for c in containers if c["name"] != main)]
    scheduler = spec.pop("schedulerName", "")
    if scheduler not in (*_SCHEDULERS, *schedulers):
        raise Refused(
            f"{at}.spec.schedulerName", scheduler, f"leave it out, or say {SCHEDULER_NAME}"
        )
    # When and how often pods are started anew is said by the job.
    spec.pop("restartPolicy", None)
    meta = found.get("metadata") or {}
    for name in ("", "labels", "annotations"):
        part = meta.get(name) if name else meta
        if part and not isinstance(part, dict):
            where = f"{at}.metadata.{name}" if name else f"{at}.metadata"
            raise Refused(where, part, "must be an object")
    kept = {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
    return {"metadata": kept, "spec": spec} if kept else {"spec": spec}


def queue_of(labels: dict[str, str], namespace: str) -> str:
    """Return the queue that an object's *labels* name in Kueue's words or KAI's; empty for none."""
    if local := labels.get(LOCAL_QUEUE_LABEL, ""):
        return local_queue(namespace, local)
    return kai_queue(labels)


def kai_queue(labels: dict[str, str]) -> str:
    """Return the queue that *labels*, of an object or of its pods, name in KAI's words."""
    return next((labels[name] for name in _KAI_QUEUES if labels.get(name)), "")


def local_queue(namespace: str, name: str) -> str:
    """Return the name of the Queue that stands for the LocalQueue *name* of *namespace*."""
    return f"{namespace}.{name}"
