"""StatefulSets: numbered pods that come one by one, and change one by one from the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.api.core import CLAIMS, PODS, AnyObject, Pod
from lockstep.api.wire import Json
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core import pods as members
from lockstep.workloads.core import revisions
from lockstep.workloads.core.plan import STATEFUL_SETS, Plan, World, owner, pod_body

INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"


@dataclass(slots=True)
class Numbered:
    """A StatefulSet with its pods by number."""

    obj: AnyObject
    pods: dict[int, Pod]
    now: float
    current: str
    """The revision that pods which do not change yet are made of."""
    update: str
    """Today's revision."""

    @property
    def numbers(self) -> range:
        """The numbers that there are to be."""
        first = int((self.obj.spec.get("ordinals") or {}).get("start", 0))
        return range(first, first + int(self.obj.spec.get("replicas", 1)))

    @property
    def parallel(self) -> bool:
        """Whether pods come and go all at once."""
        return bool(self.obj.spec.get("podManagementPolicy") == "Parallel")

    @property
    def partition(self) -> int | None:
        """From which number on pods change; none where only deleted ones do."""
        strategy = self.obj.spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return None
        rolling = strategy.get("rollingUpdate") or {}
        return self.numbers.start + int(rolling.get("partition", 0))

    def revision_of(self, pod: Pod) -> str:
        """Return the revision that *pod* was made of."""
        return pod.metadata.labels.get(revisions.HASH_LABEL, "")

    def healthy(self, pod: Pod) -> bool:
        """Say whether *pod* lets the next one have its turn."""
        least = int(self.obj.spec.get("minReadySeconds", 0))
        return not members.leaving(pod) and members.available_in(pod, least, self.now) == 0


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the StatefulSet *obj* needs next."""
    plan = Plan({})
    prefix = f"{obj.metadata.name}-"
    pods = {
        int(number): pod
        for pod in world.pods
        if pod.metadata.name.startswith(prefix)
        and (number := pod.metadata.name.removeprefix(prefix)).isdecimal()
    }
    update = revisions.newest(STATEFUL_SETS, obj, world.revisions, plan)
    current = obj.status.get("currentRevision") or update
    known = {one.metadata.name for one in world.revisions}
    numbered = Numbered(obj, pods, now, current if current in known else update, update)
    if obj.metadata.deletion_timestamp is None and _keep(numbered, world, plan):
        _change(numbered, plan)
    least = int(obj.spec.get("minReadySeconds", 0))
    _, plan.again = members.count_available(pods.values(), least, now)
    plan.status = _status(numbered)
    used = {numbered.current, update, *map(numbered.revision_of, pods.values())}
    revisions.forget(obj, world.revisions, used, plan)
    return plan


def _keep(numbered: Numbered, world: World, plan: Plan) -> bool:
    """Plan the pods that are missing or too many; say whether nothing is under way."""
    settled = True
    for number in numbered.numbers:
        pod = numbered.pods.get(number)
        if pod is None:
            _create(numbered, number, world, plan)
        elif members.ended(pod) and not members.leaving(pod):
            plan.actions.append(Delete.of(PODS, pod.metadata))
        elif numbered.healthy(pod):
            continue
        settled = False
        if not numbered.parallel:
            return False
    superfluous = sorted(set(numbered.pods) - set(numbered.numbers), reverse=True)
    for number in superfluous:
        pod = numbered.pods[number]
        if not members.leaving(pod):
            plan.actions.append(Delete.of(PODS, pod.metadata))
        settled = False
        if not numbered.parallel:
            return False
    return settled


def _change(numbered: Numbered, plan: Plan) -> None:
    """Plan the end of the last pod that is of another template than today's."""
    partition = numbered.partition
    if partition is None:
        return
    for number in reversed(numbered.numbers):
        if number < partition:
            return
        pod = numbered.pods[number]
        if numbered.revision_of(pod) != numbered.update:
            plan.actions.append(Delete.of(PODS, pod.metadata))
            return


def _create(numbered: Numbered, number: int, world: World, plan: Plan) -> None:
    obj = numbered.obj
    partition = numbered.partition
    held_back = partition is not None and number < partition
    if partition is None:
        held_back = False
    revision = numbered.current if held_back else numbered.update
    template = revisions.template_of(revision, obj, world.revisions)
    name = f"{obj.metadata.name}-{number}"
    labels = {
        INDEX_LABEL: str(number),
        NAME_LABEL: name,
        revisions.HASH_LABEL: revision,
    }
    body = pod_body(STATEFUL_SETS, obj, template, name, **labels)
    spec: Json = body["spec"]
    spec["hostname"] = name
    if service := obj.spec.get("serviceName"):
        spec["subdomain"] = service
    claims = obj.spec.get("volumeClaimTemplates") or ()
    names = {one["metadata"]["name"]: f"{one['metadata']['name']}-{name}" for one in claims}
    for claim in claims:
        plan.actions.append(Create(CLAIMS, _claim(numbered, claim, name)))
    mounted = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in names.items()
    ]
    others = [one for one in spec.get("volumes") or () if one.get("name") not in names]
    if mounted:
        spec["volumes"] = [*others, *mounted]
    plan.actions.append(Create(PODS, body))


def _claim(numbered: Numbered, claim: Json, pod: str) -> Json:
    obj = numbered.obj
    labels = (obj.spec.get("selector") or {}).get("matchLabels") or {}
    meta = {key: value for key, value in claim["metadata"].items() if value is not None}
    meta |= {"name": f"{meta['name']}-{pod}", "labels": {**(meta.get("labels") or {}), **labels}}
    retained = obj.spec.get("persistentVolumeClaimRetentionPolicy") or {}
    if retained.get("whenDeleted") == "Delete":
        meta["ownerReferences"] = [owner(STATEFUL_SETS, obj)]
    body = {key: value for key, value in claim.items() if key != "status"}
    return {
        **body,
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": meta,
    }


def _status(numbered: Numbered) -> Json:
    obj, least = numbered.obj, int(numbered.obj.spec.get("minReadySeconds", 0))
    pods = [one for one in numbered.pods.values() if not members.ended(one)]
    lasting = [one for one in pods if not members.leaving(one)]
    available, _ = members.count_available(lasting, least, numbered.now)
    updated = sum(numbered.revision_of(one) == numbered.update for one in lasting)
    current = sum(numbered.revision_of(one) == numbered.current for one in lasting)
    ready = sum(map(members.ready, lasting))
    revision = numbered.current
    whole = len(numbered.numbers)
    if numbered.partition is not None and updated == ready == len(pods) == whole:
        # All are of today's template: it is the one to stay with now.
        revision, current = numbered.update, updated
    counts = {
        "readyReplicas": ready,
        "currentReplicas": current,
        "updatedReplicas": updated,
    }
    return {
        "observedGeneration": obj.metadata.generation,
        "replicas": len(pods),
        **{key: value for key, value in counts.items() if value},
        "currentRevision": revision,
        "updateRevision": numbered.update,
        "collisionCount": int(obj.status.get("collisionCount", 0)),
        "availableReplicas": available,
    }


def refused(obj: AnyObject) -> str:
    """Return what of *obj* cannot be honoured, in words."""
    rolling = (obj.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    if str(rolling.get("maxUnavailable", 1)) != "1":
        return "spec.updateStrategy.rollingUpdate.maxUnavailable: leave it out; pods change singly"
    retained = obj.spec.get("persistentVolumeClaimRetentionPolicy") or {}
    if retained.get("whenScaled") == "Delete":
        return (
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: must be Retain; delete claims "
            "of pods that are gone yourself"
        )
    return ""
