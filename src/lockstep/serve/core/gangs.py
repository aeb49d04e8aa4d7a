"""Replicas of several pods: made together, restarted as a whole, gone together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.api.core import PODS, ControllerRevision, Pod
from lockstep.api.gang import GANGS, Gang, GangGroup, GangSpec
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import (
    GANG_GROUP_LABEL,
    GANG_LABEL,
    INDEX_LABEL,
    QUEUE_LABEL,
    ROLE_LABEL,
    ROUTE_LABEL,
)
from lockstep.api.wire import Json, to_builtins
from lockstep.runtime.actions import Action, Create, Delete
from lockstep.serve.core import pods, surroundings
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.surroundings import peers_of

HEAD: Final = "head"
WORKERS: Final = "workers"


def size(revision: ControllerRevision) -> int:
    """Return how many pods a replica of *revision* has."""
    return 1 + int(revision.data.get("workers", 0))


def is_worker(pod: Pod) -> bool:
    """Return whether a pod is part of a replica without answering for it."""
    return pod.metadata.labels.get(ROLE_LABEL) == WORKERS


def make(seen: Seen, revision: ControllerRevision, ordinal: int, queue: str) -> list[Action]:
    """Return what makes replica number *ordinal*: its gang, its head, its workers."""
    service, meta = seen.service.metadata.name, surroundings.meta(seen)
    head = pods.make(service, revision, ordinal, meta, queue)
    if size(revision) == 1:
        return [Create(PODS, head)]
    name = head["metadata"]["name"]
    gang = Gang(
        metadata=ObjectMeta(),
        spec=GangSpec(
            groups=[GangGroup(name=HEAD, min=1), GangGroup(name=WORKERS, min=size(revision) - 1)],
            queue=head["metadata"]["labels"][QUEUE_LABEL],
        ),
    )
    about = {**meta, "name": name, "labels": {ROUTE_LABEL: service}}
    body = {"apiVersion": GANGS.api_version, "kind": GANGS.kind, "metadata": about}
    spec = to_builtins(gang)["spec"]
    members = [_member(seen, revision, head, 0, name)]
    members += [worker(seen, revision, name, number, queue) for number in range(1, size(revision))]
    return [Create(GANGS, {**body, "spec": spec}), *(Create(PODS, one) for one in members)]


def worker(seen: Seen, revision: ControllerRevision, replica: str, number: int, queue: str) -> Json:
    """Return worker *number* of the replica of that name, as it is sent to the server."""
    template = revision.data["worker"]
    spec = pods.to_place(template)
    service = seen.service.metadata.name
    body = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **surroundings.meta(seen),
            "name": f"{replica}-w{number}",
            "labels": {
                **template.get("labels", {}),
                QUEUE_LABEL: template.get("labels", {}).get(QUEUE_LABEL, queue),
                ROUTE_LABEL: service,
                "serving.kserve.io/inferenceservice": service,
            },
            "annotations": template.get("annotations", {}),
        },
        "spec": spec,
    }
    return _member(seen, revision, body, number, replica)


def _member(
    seen: Seen, revision: ControllerRevision, body: Json, number: int, replica: str
) -> Json:
    """Return the pod *body* as one of its gang, told its rank and where the head is."""
    service, meta = seen.service.metadata, body["metadata"]
    role = WORKERS if number else HEAD
    meta["labels"] |= {
        GANG_LABEL: replica,
        GANG_GROUP_LABEL: role,
        ROLE_LABEL: role,
        INDEX_LABEL: str(number),
    }
    spec = body["spec"]
    spec["hostname"], spec["subdomain"] = meta["name"], peers_of(service.name)
    head = f"{replica}.{peers_of(service.name)}.{service.namespace}.svc.cluster.local"
    told = {
        "LWS_LEADER_ADDRESS": head,
        "LWS_GROUP_SIZE": str(size(revision)),
        "LWS_WORKER_INDEX": str(number),
        "HEAD_SVC": head,
        "MASTER_ADDR": head,
        "NODE_RANK": str(number),
    }
    for container in spec["containers"]:
        names = {one["name"] for one in container.get("env", [])}
        added = [{"name": k, "value": v} for k, v in told.items() if k not in names]
        container["env"] = [*added, *container.get("env", [])]
        container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    return body


def mend(seen: Seen, by_name: dict[str, ControllerRevision], queue: str) -> Iterator[Action]:
    """Yield what makes each replica whole again, or ends one that is not.

    A replica of which a pod ended goes as a whole, and is made anew; so does one whose head is gone
    or goes. One whose pods were not all made yet gets the rest.
    """
    for replica, members in replicas(seen).items():
        heads = [one for one in members if not is_worker(one)]
        workers = [one for one in members if is_worker(one)]
        revision = by_name.get(replica.rpartition("-")[0])
        if revision is None and heads:
            continue
        whole = bool(heads) and revision is not None and not any(map(pods.going, members))
        if whole and revision is not None and len(members) < size(revision):
            if heads[0].status.phase in ("", "Pending"):
                there = {one.metadata.name for one in workers}
                for number in range(1, size(revision)):
                    if f"{replica}-w{number}" not in there:
                        body = worker(seen, revision, replica, number, queue)
                        yield Create(PODS, body)
                continue
            whole = False
        if not whole:
            yield from _ended(members)
    there = set(replicas(seen))
    for gang in seen.gangs:
        if gang.metadata.name not in there and gang.metadata.deletion_timestamp is None:
            yield Delete(GANGS, gang.metadata.name, gang.metadata.uid)


def _ended(members: list[Pod]) -> Iterator[Action]:
    for one in members:
        if one.metadata.deletion_timestamp is None:
            yield Delete(PODS, one.metadata.name, one.metadata.uid)


def replicas(seen: Seen) -> dict[str, list[Pod]]:
    """Return the pods of the replicas that are several, by replica."""
    found: dict[str, list[Pod]] = {}
    for pod in seen.pods:
        if name := pod.metadata.labels.get(GANG_LABEL):
            found.setdefault(name, []).append(pod)
    return found
