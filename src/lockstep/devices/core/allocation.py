"""Which devices a kubelet had better give a container, and what the records must say afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep.api.core import Pod
from lockstep.devices.core.grants import GPUS, Kind, NotEnough, chosen
from lockstep.devices.core.holders import OVER, asked, shares
from lockstep.devices.core.model import Card

Held = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""By pod (namespace and name), by container: the identities of its devices, as kubelet has them."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A pod whose record says other cards than it holds."""

    namespace: str
    pod: str
    was: str
    now: str


def preferred(
    available: Collection[str],
    must: Sequence[str],
    size: int,
    *,
    pods: Iterable[Pod],
    held: Held,
    cards: Sequence[Card],
) -> list[str]:
    """Return *size* of the *available* cards: those chosen for the pod that starts.

    Without such a pod the cards come in their order.
    """
    chosen = chosen_for(available, must, size, pods=pods, held=held, cards=cards)
    order = [card.uuid for card in cards if card.uuid in available and card.uuid not in must]
    return chosen or [*must, *order][:size]


def chosen_for(
    available: Collection[str],
    must: Sequence[str],
    size: int,
    *,
    pods: Iterable[Pod],
    held: Held,
    cards: Sequence[Card],
    kind: Kind = GPUS,
) -> list[str]:
    """Return the devices that the scheduler chose for the pod that starts; empty without such.

    Kubelet does not say which pod it asks for. It is the oldest one of this node that holds nothing
    yet and has a container with *size* devices, all of them available.
    """
    identities = {card.index: card.uuid for card in cards}
    for pod in waiting(pods, held):
        for indices in _given(pod, kind).values():
            wanted = [identities.get(index, "") for index in indices]
            fits = len(wanted) == size and set(must) <= set(wanted) <= set(available)
            if fits:
                return wanted
    return []


def beside(pods: Iterable[Pod], held: Held, resource: str, size: int) -> list[int]:
    """Return the GPUs of the container that is about to get *size* devices of *resource*.

    It is found as ``preferred`` finds it: one of the oldest pod that holds none of them yet.
    """
    for pod in waiting(pods, held):
        gpus = _given(pod, GPUS)
        for one in pod.spec.containers:
            if asked(one.resources, resource) == size:
                return list(gpus.get(one.name, ()))
    return []


def corrections(
    pods: Iterable[Pod], held: Held, cards: Sequence[Card], kind: Kind = GPUS
) -> list[Correction]:
    """Return the pods whose annotation is not what kubelet gave them."""
    indices = {card.uuid: card.index for card in cards}
    found = []
    for pod in pods:
        meta = pod.metadata
        containers = held.get((meta.namespace, meta.name))
        if not containers or pod.status.phase in OVER:
            continue
        # Kubelet tells the cards of a container in an order that changes from call to call.
        given = [[indices.get(one, -1) for one in containers.get(name, ())] for name in _order(pod)]
        ids = [index for those in given for index in sorted(those)]
        if not ids or -1 in ids:
            continue
        now = ",".join(map(str, ids))
        was = meta.annotations.get(kind.annotation, "")
        if was != now:
            found.append(Correction(meta.namespace, meta.name, was, now))
    return found


def waiting(pods: Iterable[Pod], held: Held) -> list[Pod]:
    """Return the pods that hold nothing yet, the oldest first."""
    return sorted(
        (pod for pod in pods if _waits(pod, held)),
        key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name),
    )


def _waits(pod: Pod, held: Held) -> bool:
    meta = pod.metadata
    return pod.status.phase not in OVER and not held.get((meta.namespace, meta.name))


def _given(pod: Pod, kind: Kind) -> Mapping[str, Sequence[int]]:
    try:
        given = chosen(pod.metadata.annotations.get(kind.annotation, ""), kind)
    except NotEnough:
        return {}
    wanted = [(one.name, asked(one.resources, kind.resource)) for one in pod.spec.containers]
    return shares(wanted, given)


def _order(pod: Pod) -> list[str]:
    return [one.name for one in pod.spec.containers]
