"""What the server checks and fills in from other objects before one is created."""

from __future__ import annotations

import msgspec

from lockstep.api import names, team_images
from lockstep.api.devices import Device
from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.addresses import carry_over
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.builtin.rules.others import SYSTEM_PRIORITIES
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.queue_use import QueueUse
from lockstep.apiserver.schema.causes import Cause, Reason
from lockstep.apiserver.store import Key, Record, Store
from lockstep.compat.shares.settings import SETTINGS_MAP, Settings, settings
from lockstep.compat.shares.translate import translated
from lockstep.compat.translation import Refused

_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
_TOLERATED_SECONDS = 300
_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


class Admission:
    """Checks against the other objects in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues = QueueUse(store)
        self._priorities: dict[str, tuple[Record, int, str]] = {}

    def create(self, served: Served, namespace: str, obj: Json, user: User | None) -> None:
        """Admit *obj*, filling in what follows from other objects; *user* is None for the server.

        Raises:
            StatusError: when it may not be created there.
        """
        if served.kind.namespaced:
            self._require_namespace(served, namespace, obj["metadata"]["name"])
        if served.storage == "pods":
            self._translate_shares(obj)
            self._require_images(obj)
            self._complete_pod(obj)
        self._queues.fill_in(served, namespace, obj)
        self._queues.require(served, namespace, obj, None, user)

    def change(self, served: Served, new: Json, old: Json, user: User | None) -> None:
        """Admit *new* in the place of *old*: what creation has worked out stays as it is."""
        namespace = old["metadata"].get("namespace") or ""
        self._queues.fill_in(served, namespace, new)
        self._queues.require(served, namespace, new, old, user)
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
                _tolerate(spec)
                self._require_images(new)
            quality = (old.get("status") or {}).get("qosClass")
            if quality and isinstance(new.get("status"), dict):
                new["status"].setdefault("qosClass", quality)

    def delete(self, served: Served, name: str) -> None:
        """Let an object go, unless a cluster cannot be without it.

        Raises:
            StatusError: when it must stay.
        """
        if served.storage == "namespaces" and name in _IMMORTAL:
            raise status.forbidden("", "namespaces", name, "this namespace may not be deleted")

    def _require_namespace(self, served: Served, namespace: str, name: str) -> None:
        found = self._store.newest(Key("namespaces", "", namespace))
        if found is None:
            raise status.not_found("", "namespaces", namespace)
        if found.meta.deletion_timestamp:
            raise status.terminating(served.kind.group, served.kind.plural, name, namespace)

    def _translate_shares(self, pod: Json) -> None:
        """Put shares of GPUs that are asked for in another system's words into ours."""
        try:
            ours = translated(pod, self._card_memory, self._sharing)
        except Refused as refused:
            given = refused.problem
            cause = Cause(given.field, Reason.INVALID, f"{given.given!r}: {given.allowed}")
            raise status.invalid("", "Pod", pod["metadata"]["name"], [cause]) from None
        if ours is not None:
            pod["metadata"], pod["spec"] = ours["metadata"], ours["spec"]

    def _require_images(self, pod: Json) -> None:
        """Require that a pod of a team has images that the team allows."""
        space = self._store.newest(Key("namespaces", "", pod["metadata"].get("namespace") or ""))
        labels = (space.object()["metadata"].get("labels") or {}) if space is not None else {}
        if names.TEAM_LABEL not in labels:
            return
        found = self._store.newest(Key(f"teams.{names.GROUP}", "", labels[names.TEAM_LABEL]))
        team = found.object() if found is not None else {}
        allowed = (team.get("spec") or {}).get("images")
        if allowed is None or not isinstance(spec := pod.get("spec"), dict):
            return
        wrong = team_images.refused(spec, labels[names.TEAM_LABEL], allowed)
        if wrong is not None:
            field, image, remedy = wrong
            raise _forbidden(pod, f"{field}: image {image} is not allowed; {remedy}")

    def _sharing(self) -> Settings:
        """Return what the cluster says of other systems' words."""
        found = self._store.newest(Key("configmaps", names.SYSTEM_NAMESPACE, SETTINGS_MAP))
        return settings(found.object().get("data") or {}) if found is not None else Settings()

    def _card_memory(self) -> int | None:
        """Return the MiB of the cluster's GPUs, where all have the same."""
        found: set[int] = set()
        for record in self._store.objects("nodes"):
            annotations = record.object()["metadata"].get("annotations") or {}
            told = annotations.get(names.DEVICES_ANNOTATION)
            if told:
                devices = msgspec.json.decode(told, type=list[Device])
                found |= {one.memory for one in devices if one.kind == "gpu"}
        return found.pop() if len(found) == 1 else None

    def _complete_pod(self, pod: Json) -> None:
        spec = pod.get("spec")
        if not isinstance(spec, dict):
            return
        self._require_account(pod, spec)
        _tolerate(spec)
        value, policy = self._priority(pod, spec)
        given = spec.get("priority")
        if given is not None and given != value:
            raise _forbidden(
                pod,
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name",
            )
        spec["priority"] = value
        spec.setdefault("preemptionPolicy", policy)

    def _require_account(self, pod: Json, spec: Json) -> None:
        """Give a pod its service account, which is there or, as ``default``, about to be."""
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        namespace = pod["metadata"]["namespace"]
        key = Key("serviceaccounts", namespace, name)
        if name != "default" and self._store.newest(key) is None:
            raise _forbidden(
                pod,
                f"error looking up service account {namespace}/{name}: serviceaccount "
                f'"{name}" not found',
            )

    def _priority(self, pod: Json, spec: Json) -> tuple[int, str]:
        name = spec.get("priorityClassName")
        if not name:
            default = self._default_class()
            if default is None:
                return 0, "PreemptLowerPriority"
            name = spec["priorityClassName"] = default
        if name in SYSTEM_PRIORITIES:
            return SYSTEM_PRIORITIES[name], "PreemptLowerPriority"
        record = self._store.newest(Key("priorityclasses.scheduling.k8s.io", "", name))
        if record is None:
            raise _forbidden(pod, f"no PriorityClass with name {name} was found")
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


def _forbidden(pod: Json, why: str) -> status.StatusError:
    return status.forbidden("", "pods", pod["metadata"]["name"], why)


def _tolerate(spec: Json) -> None:
    """Let a pod stay for some minutes on a node that is not ready or cannot be reached."""
    given = spec.get("tolerations") or []
    added = [
        {
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATED_SECONDS,
        }
        for taint in (_NOT_READY, _UNREACHABLE)
        if not any(_covers(toleration, taint) for toleration in given)
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def _covers(toleration: Json, taint: str) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    return key in (None, "", taint) and effect in (None, "", "NoExecute")
