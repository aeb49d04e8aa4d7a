"""Which devices a kubelet had better give a container, and what the records must say afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.devices.core.grants import NotEnough, chosen
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
    """Return *size* of the *available* devices: those the scheduler chose for the pod that starts.

    Kubelet does not say which pod it asks for. It is the oldest one of this node that holds nothing
    yet and has a container with so many cards, all of them available. Without such a pod the
    devices come in the order of the cards.
    """
    identities = {card.index: card.uuid for card in cards}
    waiting = sorted(
        (pod for pod in pods if _waits(pod, held)),
        key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name),
    )
    for pod in waiting:
        for indices in _given(pod).values():
            wanted = [identities.get(index, "") for index in indices]
            fits = len(wanted) == size and set(must) <= set(wanted) <= set(available)
            if fits:
                return wanted
    order = [card.uuid for card in cards if card.uuid in available and card.uuid not in must]
    return [*must, *order][:size]


def corrections(pods: Iterable[Pod], held: Held, cards: Sequence[Card]) -> list[Correction]:
    """Return the pods whose annotation is not what kubelet gave them."""
    indices = {card.uuid: card.index for card in cards}
    found = []
    for pod in pods:
        meta = pod.metadata
        containers = held.get((meta.namespace, meta.name))
        if not containers or pod.status.phase in OVER:
            continue
        ids = [one for name in _order(pod) for one in containers.get(name, ())]
        if not ids or any(one not in indices for one in ids):
            continue
        now = ",".join(str(indices[one]) for one in ids)
        was = meta.annotations.get(names.GPUS_ANNOTATION, "")
        if was != now:
            found.append(Correction(meta.namespace, meta.name, was, now))
    return found


def _waits(pod: Pod, held: Held) -> bool:
    meta = pod.metadata
    return pod.status.phase not in OVER and not held.get((meta.namespace, meta.name))


def _given(pod: Pod) -> Mapping[str, Sequence[int]]:
    try:
        given = chosen(pod.metadata.annotations.get(names.GPUS_ANNOTATION, ""))
    except NotEnough:
        return {}
    return shares([(one.name, asked(one.resources)) for one in pod.spec.containers], given)


def _order(pod: Pod) -> list[str]:
    return [one.name for one in pod.spec.containers]
