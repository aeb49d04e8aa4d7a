"""A training job of few words: what the command line, the console's form and the SDK know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api import names
from lockstep.api.imageless import NO_IMAGE, keep_off_kubelets
from lockstep.api.wire import Json

_LAUNCHED: Final = ("mpi", "horovod")
"""Frameworks whose command runs once, in a launcher."""
_CLUSTERS: Final = {
    "ray": ("head", "worker"),
    "spark": ("master", "worker"),
    "flink": ("jobmanager", "taskmanager"),
}
"""Frameworks that bring a cluster, whose command runs in a driver: roles of head and workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The words; what is left out is not written into the job."""

    name: str = ""
    namespace: str = ""
    framework: str
    command: list[str]
    image: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int | None] = field(default_factory=dict)
    """Of the workers: replicas, min, max, processesPerNode."""
    requests: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)
    """Limits of the workers alone."""
    container: Mapping[str, Any] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    """More of each container, each pod and the job, as the object has it."""


def training_job(draft: Draft) -> Json:
    """Return the job that the draft describes, as a plain object."""
    metadata = {"name": draft.name} if draft.name else {"generateName": f"{draft.framework}-"}
    if draft.namespace:
        metadata["namespace"] = draft.namespace
    more = {key: value for key, value in draft.spec.items() if value}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": metadata,
        "spec": {"framework": draft.framework, **more, "roles": _roles(draft)},
    }


def _roles(draft: Draft) -> list[Json]:
    sizes = {key: number for key, number in draft.sizes.items() if number is not None}
    lead, name = _CLUSTERS.get(draft.framework, ("launcher", "worker"))
    alone = draft.framework not in (*_LAUNCHED, *_CLUSTERS)
    pod = _pod(draft, draft.command if alone else [], draft.devices)
    worker = {"name": name, **sizes, "template": {"spec": pod}}
    if alone:
        return [worker]
    runs = {"template": {"spec": _pod(draft, draft.command, {})}}
    if draft.framework in _LAUNCHED:
        # An MPI job's command runs once, in the launcher; the workers wait for it.
        return [{"name": lead, "replicas": 1, **runs}, worker]
    head = {"name": lead, "template": {"spec": _pod(draft, [], {})}}
    return [head, worker, {"name": "driver", **runs}]


def _pod(draft: Draft, command: list[str], devices: Mapping[str, int]) -> Json:
    amounts = {"requests": draft.requests, "limits": {**draft.limits, **devices}}
    resources = {part: dict(given) for part, given in amounts.items() if given}
    environment = [{"name": name, "value": value} for name, value in draft.environment.items()]
    main = {
        "command": list(command),
        "env": environment,
        "resources": resources,
        **draft.container,
    }
    told = {key: value for key, value in main.items() if value}
    spec = {"containers": [{"name": "main", "image": draft.image or NO_IMAGE, **told}], **draft.pod}
    if not draft.image:
        keep_off_kubelets(spec)
    return spec
