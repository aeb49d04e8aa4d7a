"""Fields of an LLMInferenceService that have no effect here, so that a condition names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.api.wire import Json

_WORKLOAD: Final[Json] = {
    "replicas": None,
    "parallelism": dict.fromkeys(
        ("tensor", "pipeline", "data", "dataLocal", "dataRPCPort", "expert")
    ),
    "template": None,
    "worker": None,
    "labels": None,
    "annotations": None,
    "scaling": {"minReplicas": None, "maxReplicas": None},
}
_HONOURED: Final[Json] = {
    **_WORKLOAD,
    "model": {
        "uri": None,
        "name": None,
        "lora": {
            "adapters": {"uri": None, "name": None},
            "maxRank": None,
            "maxAdapters": None,
            "maxCpuAdapters": None,
        },
    },
    "prefill": _WORKLOAD,
    "baseRefs": None,
    "trustRemoteCode": None,
    "storageInitializer": {},
    "router": {"route": {"http": {}}, "gateway": {}, "ingress": {}, "scheduler": {}},
}
"""Fields by name; none where all below one is honoured. An empty object asks for the default."""
_INSTEAD: Final = {
    "router.scheduler": "Lockstep's router chooses the replica, by prefix and load",
    "router": "Lockstep's router carries the requests",
    "scaling": "minReplicas, maxReplicas and autoscaling.knative.dev annotations say how many",
    "rolloutStrategy": "the new revision starts beside the old one, or in its place without room",
    "storageInitializer": "the scheme of model.uri says how the model comes",
    "kvCacheOffloading": "write the engine's own arguments in template",
    "runtime": "write the image in template",
}


def ignored(spec: Json) -> list[str]:
    """Return the fields of *spec* that have no effect, each with what holds instead."""
    found = []
    for path in _unknown(spec, _HONOURED, ""):
        bare = path.removeprefix("prefill.")
        keys = [key for key in _INSTEAD if f"{bare}.".startswith(f"{key}.")]
        instead = _INSTEAD[max(keys, key=len)] if keys else "no such field is known"
        found.append(f"spec.{path}: {instead}")
    return found


def _unknown(value: Json, known: Json, where: str) -> Iterator[str]:
    for key, below in value.items():
        if below in (None, {}, []) or (where == "storageInitializer." and below is True):
            continue
        if key not in known:
            yield where + key
            continue
        parts = below if isinstance(below, list) else [below]
        for number, one in enumerate(parts):
            if known[key] is not None and isinstance(one, dict):
                step = f"{key}[{number}]." if isinstance(below, list) else f"{key}."
                yield from _unknown(one, known[key], where + step)
