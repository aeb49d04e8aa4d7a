"""Hands shares of this node's GPUs out through its kubelet.

A container with a share asks for places of ``lockstep.dev/gpu-cards`` (the webhook adds them). It
gets its cards' device files, and in place of NVIDIA's libraries the front with a file that says
what it was granted. Kubelet does not say for which container it asks: the oldest one that waits for
these cards is supposed, and what kubelet says afterwards is held against it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.compat.shares.variables import variables
from lockstep.devices.core import slots
from lockstep.devices.core.holders import OVER
from lockstep.devices.core.model import Card
from lockstep.devices.core.slots import Waiting
from lockstep.devices.kubelet import podresources
from lockstep.devices.kubelet.places import LIBRARIES, PLACE
from lockstep.devices.kubelet.plugin import Denied, Devices, Plugin, device, grant
from lockstep.devices.kubelet.wire import deviceplugin_pb2 as wire
from lockstep.devices.sharing import front, region
from lockstep.devices.sharing.core.asks import MIB, Ask, BadAsk
from lockstep.devices.sharing.core.asks import asked as share_asked
from lockstep.devices.sharing.core.gaps import NOT_HELD
from lockstep.devices.sharing.shelf import Grant, Shelf
from lockstep.kube.events import Recorder

log = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""Seconds that kubelet is let wait for a pod that it knows and the agent does not yet."""
_LOOK: Final = 0.1
_REMEDY: Final = (
    f"container {{}} asks for a share of a GPU without {names.GPU_CARDS}: kubelet gives it no "
    f"card; add {names.GPU_CARDS}: 1, or let the webhook add it (`lockstep cluster install`)"
)


Found = TypeVar("Found")


class SharePlugin(Plugin):
    """Offers places on cards to kubelet and makes the shares of those who take them."""

    def __init__(
        self,
        watch: Devices,
        kubelet: Path,
        root: Path,
        *,
        pods: Callable[[], Iterable[Pod]],
        claimed: Callable[[], Mapping[str, str]],
    ) -> None:
        super().__init__(watch, names.GPU_CARDS, kubelet, self._choose, claimed=claimed)
        self._devices, self._kubelet_directory, self._pods = watch, kubelet, pods
        self.shelf = Shelf(root)
        self._warned: set[tuple[str, str]] = set()
        self._given: set[tuple[str, str]] = set()
        """Containers that have theirs, also those whose shares nothing here holds."""

    def cards(self) -> list[Card]:
        """Return the cards that may be shared."""
        cards = self._devices.inventory.cards
        return [one for one in cards if one.resource == names.GPU and one.uuid and not one.mig]

    def offered(self) -> list[wire.Device]:
        """Return the places on all cards."""
        return [device(card, place) for card in self.cards() for place in slots.places(card)]

    async def given(self, ids: Sequence[str]) -> wire.ContainerAllocateResponse:
        """Return what the container gets that waits for a share of these cards.

        Raises:
            Denied: when none does, or its share cannot be held.
        """
        found = await _patiently(lambda: slots.matching(ids, self._ahead(), self.cards()))
        if found is None:
            raise Denied(
                f"no pod that waits here was given a share of GPU "
                f"{', '.join(sorted(set(map(slots.card_of, ids))))}: shares are given by the "
                f"scheduler {names.SCHEDULER_NAME}"
            )
        claimed = {**self._claimed(), **await self._whole()}
        cards = [card for card in self.cards() if card.index in found.cards]
        for card in cards:
            if card.uuid in claimed:
                raise Denied(f"GPU {card.uuid} is held by {claimed[card.uuid]}")
        answer = grant(cards)
        try:
            ask = share_asked(found.container.resources, found.pod.metadata.annotations)
            if ask is not None and ask.isolation == "lease":
                self._hold(found, ask, cards, list(ids), answer)
            elif ask is not None and ask.isolation == "mps":
                raise Denied("shares held by mps are not handed out through a kubelet; use lease")
        except (BadAsk, front.NoFront) as error:
            raise Denied(f"container {found.container.name}: {error}") from error
        self._given.add(found.key)
        return answer

    def in_use(self) -> dict[str, str]:
        """Return by card, in words, whose share is on it."""
        grants = [one for one, _ in self.shelf.grants() if one.places]
        return slots.holders({f"{one.namespace}/{one.pod}": one.cards for one in grants})

    async def settle(self, recorder: Recorder) -> None:
        """Hold what was supposed against what kubelet says, and drop what is over."""
        held = await podresources.held_if_told(self._kubelet_directory, names.GPU_CARDS)
        pods = {pod.metadata.uid: pod for pod in self._pods()}
        by_name = {(p.metadata.namespace, p.metadata.name): p for p in pods.values()}
        for name, containers in held.items():
            if name in by_name:
                uid = by_name[name].metadata.uid
                self._given |= {(uid, one) for one, ids in containers.items() if ids}
        self._given = {key for key in self._given if key[0] in pods}
        for one, _ in list(self.shelf.grants()):
            if not one.places:
                continue
            pod = pods.get(one.uid)
            if pod is None or pod.status.phase in OVER:
                self.shelf.drop(one.uid)

        def of_holder(one: Grant) -> Grant | None:
            true = slots.true_holder(one.places, held)
            if true is None or true == (one.namespace, one.pod, one.container):
                return None
            return _moved(one, by_name.get(true[:2]), true[2])

        self.shelf.settle(of_holder)
        for pod, container in slots.unasked(pods.values()):
            if (key := (pod.metadata.uid, container)) not in self._warned:
                self._warned.add(key)
                recorder.event(pod, "Warning", NOT_HELD, _REMEDY.format(container))

    # --- helpers ---

    async def _choose(
        self, available: Collection[str], must: Sequence[str], size: int
    ) -> list[str]:
        def ready() -> bool | None:
            return any(len(one.cards) == size for one in self._ahead()) or None

        await _patiently(ready)
        return slots.preferred(available, must, size, ahead=self._ahead(), cards=self.cards())

    def _ahead(self) -> list[Waiting]:
        granted = self._given | {(one.uid, one.container) for one, _ in self.shelf.grants()}
        return list(slots.waiting(self._pods(), granted))

    async def _whole(self) -> dict[str, str]:
        """Return by card the pod that has it as a whole."""
        held = await podresources.held_if_told(self._kubelet_directory, names.GPU)
        return {
            identity: f"pod {namespace}/{pod}"
            for (namespace, pod), containers in held.items()
            for ids in containers.values()
            for identity in ids
        }

    def _hold(
        self,
        of: Waiting,
        ask: Ask,
        cards: Sequence[Card],
        ids: list[str],
        answer: wire.ContainerAllocateResponse,
    ) -> None:
        found, meta = front.find(), of.pod.metadata
        share = self.shelf.put(
            Grant(
                namespace=meta.namespace,
                pod=meta.name,
                container=of.container.name,
                uid=meta.uid,
                cards=[card.uuid for card in cards],
                memory=ask.memory,
                compute=ask.compute,
                policy=ask.policy,
                offline=ask.offline,
                places=ids,
            )
        )
        # As which user the container runs is not known; no other sees the files.
        own = [path for path in region.files(share) if path != share]
        for path in own:
            path.chmod(0o666)
        seen = {
            PLACE / "front": found.directory,
            **{front.inside(PLACE, path): path for path in region.files(share)},
            PLACE / front.CUDA: found.cuda,
            **({PLACE / front.NVML: found.nvml} if found.nvml else {}),
        }
        for inside, path in seen.items():
            answer.mounts.append(
                wire.Mount(
                    container_path=str(inside), host_path=str(path), read_only=path not in own
                )
            )
        nvml = PLACE / front.NVML if found.nvml else None
        told = front.told(front.inside(PLACE, share), PLACE / front.CUDA, nvml)
        answer.envs.update({**told, "LD_LIBRARY_PATH": LIBRARIES, **_dialect(of, ask, cards)})


def _moved(one: Grant, pod: Pod | None, container: str) -> Grant | None:
    """Return a share as that of another container: kubelet gave it the places."""
    spec = next((c for c in pod.spec.containers if c.name == container), None) if pod else None
    if pod is None or spec is None:
        return None
    try:
        ask = share_asked(spec.resources, pod.metadata.annotations)
    except BadAsk:
        ask = None
    if ask is None:
        return None
    log.warning("%s/%s has the share that was made for %s", pod.metadata.name, container, one.pod)
    return msgspec.structs.replace(
        one,
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        container=container,
        uid=pod.metadata.uid,
        memory=ask.memory,
        compute=ask.compute,
        policy=ask.policy,
        offline=ask.offline,
    )


async def _patiently(look: Callable[[], Found | None]) -> Found | None:
    """Return what there is to see, as soon as there is something."""
    for _ in range(int(PATIENCE / _LOOK)):
        if (found := look()) is not None:
            return found
        await asyncio.sleep(_LOOK)
    return look()


def _dialect(of: Waiting, ask: Ask, cards: Sequence[Card]) -> dict[str, str]:
    """Return the variables that programs of other systems read."""
    return variables(
        of.pod.metadata.annotations.get(names.DIALECT_ANNOTATION, ""),
        memory=ask.memory // MIB,
        compute=ask.compute,
        cards=[card.index for card in cards],
        card_memory=cards[0].memory,
        pod=ask.memory // MIB,
    )
