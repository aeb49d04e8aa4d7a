"""What the server checks and fills in from other objects before one is created."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver import status
from lockstep.apiserver.addresses import carry_over
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.store import Key, Record, Store

Json = dict[str, Any]

_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class Admission:
    """Checks against the other objects in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._priorities: dict[str, tuple[Record, int, str]] = {}

    def create(self, served: Served, namespace: str, obj: Json) -> None:
        """Admit *obj*, filling in what follows from other objects.

        Raises:
            StatusError: when it may not be created there.
        """
        if served.kind.namespaced:
            self._require_namespace(served, namespace, obj["metadata"]["name"])
        if served.storage == "pods":
            self._complete_pod(obj)

    def change(self, served: Served, new: Json, old: Json) -> None:
        """Admit *new* in the place of *old*: what creation has worked out stays as it is."""
        if served.storage == "services":
            carry_over(new, old)
        if served.storage == "pods":
            spec, before = new.get("spec"), old.get("spec") or {}
            if isinstance(spec, dict):
                for name in (
                    "priority",
                    "preemptionPolicy",
                    "serviceAccountName",
                    "serviceAccount",
                ):
                    if name in before:
                        spec.setdefault(name, before[name])

    def _require_namespace(self, served: Served, namespace: str, name: str) -> None:
        found = self._store.newest(Key("namespaces", "", namespace))
        if found is None:
            raise status.not_found("", "namespaces", namespace)
        if found.meta.deletion_timestamp:
            raise status.terminating(served.kind.group, served.kind.plural, name, namespace)

    def _complete_pod(self, pod: Json) -> None:
        spec = pod.get("spec")
        if not isinstance(spec, dict):
            return
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec.get("serviceAccount") or "default"
        spec["serviceAccount"] = spec["serviceAccountName"]
        value, policy = self._priority(pod, spec)
        given = spec.get("priority")
        if given is not None and given != value:
            raise status.forbidden(
                "",
                "pods",
                pod["metadata"]["name"],
                "the integer value of priority must not be provided in pod spec; priority "
                "admission controller computed a different value from the given PriorityClass "
                f"name ({value}), but {given} was given",
            )
        spec["priority"] = value
        spec.setdefault("preemptionPolicy", policy)

    def _priority(self, pod: Json, spec: Json) -> tuple[int, str]:
        name = spec.get("priorityClassName")
        if not name:
            default = self._default_class()
            if default is None:
                return 0, "PreemptLowerPriority"
            name = spec["priorityClassName"] = default
        if name in _SYSTEM_PRIORITIES:
            return _SYSTEM_PRIORITIES[name], "PreemptLowerPriority"
        record = self._store.newest(Key("priorityclasses.scheduling.k8s.io", "", name))
        if record is None:
            raise status.forbidden(
                "",
                "pods",
                pod["metadata"]["name"],
                f"no PriorityClass with name {name} was found",
            )
        return self._read_class(record)

    def _read_class(self, record: Record) -> tuple[int, str]:
        known = self._priorities.get(record.key.name)
        if known is None or known[0] is not record:
            obj = record.object()
            policy = obj.get("preemptionPolicy") or "PreemptLowerPriority"
            known = record, int(obj.get("value", 0)), policy
            self._priorities[record.key.name] = known
        return known[1], known[2]

    def _default_class(self) -> str | None:
        defaults = [
            record
            for record in self._store.objects("priorityclasses.scheduling.k8s.io")
            if b'"globalDefault":true' in record.data
        ]
        if not defaults:
            return None
        return min(defaults, key=lambda record: self._read_class(record)[0]).key.name
