"""The NICs of a process node: which ones a pod gets, and what its containers are told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lockstep.devices.core import grants
from lockstep.devices.core.model import Card, Port
from lockstep.devices.network.candidates import seen
from lockstep.devices.network.core.offers import Offers, offers, variables
from lockstep.devices.network.tree import Tree
from lockstep.nodes.process import admission
from lockstep.nodes.process.spec import Pod


class Nics:
    """Hands out the RDMA devices that the node registered with; without any it does nothing."""

    def __init__(self, ports: Sequence[Port] = (), tree: Callable[[], Tree] = Tree) -> None:
        self._any, self._tree = bool(ports), tree

    def choose(self, pod: Pod, used: Iterable[int]) -> list[int]:
        """Return the indices of a pod's NICs: those the scheduler chose, or the lowest free ones.

        Raises:
            NotEnough: when they are not there, in use, or their link is down.
        """
        kind = grants.NICS
        wanted = admission.requests(pod).get(kind.resource, 0) // 1000
        if not wanted:
            return []
        annotation = pod.metadata.annotations.get(kind.annotation, "")
        sound = {card.index for card in self._offers().cards if not card.trouble}
        return grants.assign(annotation, wanted, sound, set(used), kind)

    def variables(self, indices: Sequence[int]) -> dict[str, str]:
        """Return what a container is told that has these NICs, by the GID tables of now."""
        if not indices:
            return {}
        found = self._offers()
        cards = {card.index: card for card in found.cards}
        given = [cards[index] for index in indices if index in cards]
        return variables(found, given) if given else {}

    @property
    def cards(self) -> list[Card]:
        """Return the NICs of now as cards; the node shuts those that are not granted."""
        return self._offers().cards

    def _offers(self) -> Offers:
        return offers(seen(self._tree())) if self._any else offers([])
