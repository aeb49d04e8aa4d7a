"""Who holds which cards of a node: from its pods, as they are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep.api import names, quantity
from lockstep.api.containers import ResourceRequirements
from lockstep.api.core import Pod
from lockstep.devices.core.grants import NotEnough, chosen

OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Holder:
    """One container that holds a card, and whose it is."""

    namespace: str
    pod: str
    container: str
    uid: str = ""
    queue: str = ""
    gang: str = ""
    job: str = ""
    rank: str = ""

    def labels(self) -> dict[str, str]:
        """Return the labels that metrics of its cards bear."""
        own = {"container": self.container, "namespace": self.namespace, "pod": self.pod}
        more = {
            "queue": self.queue,
            "gang": self.gang,
            "lockstep_job": self.job,
            "rank": self.rank,
        }
        return own | {name: value for name, value in more.items() if value}


def asked(resources: ResourceRequirements, resource: str = names.GPU) -> int:
    """Return how many devices of *resource* a container asks for."""
    limits, requests = resources.limits, resources.requests
    amount = limits.get(resource, requests.get(resource, 0))
    return quantity.to_int(amount)


def shares(wanted: Sequence[tuple[str, int]], given: Sequence[int]) -> dict[str, list[int]]:
    """Return the devices of each container: in order, as many as it asks for.

    *wanted* are the containers by name with what each asks for. Where none asks for whole devices
    (a share of a card is counted otherwise), each gets all.
    """
    if not any(count for _, count in wanted):
        return {name: list(given) for name, _ in wanted}
    found: dict[str, list[int]] = {}
    rest = list(given)
    for name, count in wanted:
        found[name], rest = rest[:count], rest[count:]
    return found


def by_container(
    containers: Sequence[tuple[str, ResourceRequirements]],
    given: Sequence[int],
    resource: str = names.GPU,
) -> dict[str, list[int]]:
    """Return the devices of each container of a pod that was given some.

    Where containers name claims, those share what the pod has, and the others have nothing.
    """
    if any(resources.claims for _, resources in containers):
        return {name: list(given) if one.claims else [] for name, one in containers}
    return shares([(name, asked(one, resource)) for name, one in containers], given)


def holders(
    pods: Iterable[Pod], resource: str = names.GPU, annotation: str = names.GPUS_ANNOTATION
) -> dict[int, list[Holder]]:
    """Return the holders of each card by its index; what cannot be read holds nothing.

    Of other devices *resource* is what containers ask for, *annotation* what their pods were given.
    """
    found: dict[int, list[Holder]] = {}
    for pod in pods:
        if pod.status.phase in OVER:
            continue
        try:
            given = chosen(pod.metadata.annotations.get(annotation, ""))
        except NotEnough:
            continue
        wanted = [(one.name, one.resources) for one in pod.spec.containers]
        for name, indices in by_container(wanted, given, resource).items():
            for index in indices:
                found.setdefault(index, []).append(_holder(pod, name))
    return found


def _holder(pod: Pod, container: str) -> Holder:
    meta = pod.metadata
    labels: Mapping[str, str] = meta.labels
    return Holder(
        meta.namespace,
        meta.name,
        container,
        meta.uid,
        labels.get(names.QUEUE_LABEL, ""),
        labels.get(names.GANG_LABEL, ""),
        labels.get(names.JOB_LABEL, ""),
        meta.annotations.get(names.RANK_ANNOTATION, ""),
    )
