"""Which container a share of cards is for, as kubelet asks for places on cards and names no pod.

Every card has so many places, each an identity ``UUID/NUMBER``. A container with a share asks
kubelet for as many places of ``lockstep.dev/gpu-cards`` as it uses cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api import names
from lockstep.api.containers import Container
from lockstep.api.core import Pod
from lockstep.devices.core.allocation import Held
from lockstep.devices.core.grants import NotEnough, chosen
from lockstep.devices.core.holders import OVER, asked
from lockstep.devices.core.model import Card

PLACES: Final = 100
"""Containers that a card can be shared by: a share has at least a hundredth of it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container of this node that waits for its share, and its cards' indices."""

    pod: Pod
    container: Container
    cards: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Return its pod's UID and its name."""
        return self.pod.metadata.uid, self.container.name


def places(card: Card) -> list[str]:
    """Return the identities of a card's places."""
    return [f"{card.uuid}/{number:02}" for number in range(PLACES)]


def card_of(place: str) -> str:
    """Return the UUID of the card that a place is on."""
    return place.rpartition("/")[0]


def shares(container: Container) -> bool:
    """Return whether a container asks for a share of cards."""
    return any(asked(container.resources, one) for one in (names.GPU_MEMORY, names.GPU_COMPUTE))


def waiting(pods: Iterable[Pod], granted: Collection[tuple[str, str]]) -> Iterator[Waiting]:
    """Yield the containers that wait for their shares, in the order in which kubelet takes them.

    *granted* are those that have theirs, by UID of the pod and name.
    """
    for pod in sorted(pods, key=_age):
        meta = pod.metadata
        if pod.status.phase in OVER or meta.deletion_timestamp:
            continue
        try:
            given = chosen(meta.annotations.get(names.GPUS_ANNOTATION, ""))
        except NotEnough:
            continue
        for one in pod.spec.containers:
            count = asked(one.resources, names.GPU_CARDS)
            if count and given and shares(one) and (meta.uid, one.name) not in granted:
                yield Waiting(pod, one, tuple(given[:count]))


def preferred(
    available: Collection[str],
    must: Sequence[str],
    size: int,
    *,
    ahead: Iterable[Waiting],
    cards: Sequence[Card],
) -> list[str]:
    """Return *size* of the *available* places: on the cards of the container that is next.

    Without such a container any of them will do: it gets no share (see `matching`).
    """
    uuids = {card.index: card.uuid for card in cards}
    free: dict[str, list[str]] = {}
    for place in sorted(available):
        free.setdefault(card_of(place), []).append(place)
    for one in ahead:
        wanted = [uuids.get(index, "") for index in one.cards]
        if len(wanted) == size and not must and all(free.get(uuid) for uuid in wanted):
            return [free[uuid][0] for uuid in wanted]
    return [*must, *sorted(set(available) - set(must))][:size]


def matching(ids: Sequence[str], ahead: Iterable[Waiting], cards: Sequence[Card]) -> Waiting | None:
    """Return the container that is next of those whose cards these places are on."""
    uuids = {card.index: card.uuid for card in cards}
    given = sorted(map(card_of, ids))
    for one in ahead:
        if sorted(uuids.get(index, "") for index in one.cards) == given:
            return one
    return None


def true_holder(ids: Collection[str], held: Held) -> tuple[str, str, str] | None:
    """Return namespace, pod and container that kubelet gave just these places."""
    for (namespace, pod), containers in held.items():
        for container, theirs in containers.items():
            if theirs and set(theirs) == set(ids):
                return namespace, pod, container
    return None


def unasked(pods: Iterable[Pod]) -> Iterator[tuple[Pod, str]]:
    """Yield containers with a share that kubelet is not asked a place for: they get no card."""
    for pod in pods:
        if pod.status.phase not in OVER:
            for one in pod.spec.containers:
                if shares(one) and not asked(one.resources, names.GPU_CARDS):
                    yield pod, one.name


def holders(grants: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return by card the pod whose share is on it; *grants* are the cards by pod."""
    return {uuid: f"the share of pod {pod}" for pod, cards in grants.items() for uuid in cards}


def _age(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name
