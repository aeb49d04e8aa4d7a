"""Shares of GPUs as the containers of a process node get them.

A container with a share meets the front in place of NVIDIA's libraries, and a file that says what
it was granted. Where the front is missing it is not started: its limits would not be held.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from lockstep.api import names
from lockstep.api.share_sizes import (
    GRANTED,
    HELD,
    Size,
    answer,
    answered,
    counted,
    in_words,
    size_of,
    wish,
)
from lockstep.compat.shares.variables import variables
from lockstep.devices.core.holders import asked as whole_asked
from lockstep.devices.core.model import Card
from lockstep.devices.sharing import front
from lockstep.devices.sharing.core.asks import MIB, Ask, BadAsk, asked
from lockstep.devices.sharing.region import files as _files
from lockstep.devices.sharing.shelf import Grant, Shelf
from lockstep.nodes.process.environment import Command, ConfigError
from lockstep.nodes.process.facts import Resized
from lockstep.nodes.process.spec import Container, Pod

PIPES: Final = "CUDA_MPS_PIPE_DIRECTORY"
MPS: Final = Path("/tmp/nvidia-mps")  # noqa: S108 - where NVIDIA's daemon has its pipes
_NOT_HELD: Final = (
    f"{names.GPU_ISOLATION_ANNOTATION} is timeslice: the driver shares the card's time between "
    "processes; neither memory nor compute is held"
)
PLACE: Final = Path("/run/lockstep")
"""Where a container sees the front and its share."""

Orders = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entered:
    """What a container needs to meet its share: mounts and variables; empty without one."""

    mounts: tuple[Orders, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    libraries: str = ""
    remark: str = ""
    """What of the share is not held, for the pod's events."""

    def joined(self, command: Command) -> Command:
        """Return *command* with these variables, the front before all other libraries."""
        if not self.variables:
            return command
        env = {**command.env, **dict(self.variables)}
        if self.libraries:
            before = command.env.get("LD_LIBRARY_PATH", "")
            env["LD_LIBRARY_PATH"] = f"{self.libraries}:{before}" if before else self.libraries
        return replace(command, env=env)


class Shares:
    """The shares of this node's containers, below *root*."""

    def __init__(self, root: Path, cards: Sequence[Card], *, mounts: bool) -> None:
        self.shelf, self._cards, self._mounts = Shelf(root), cards, mounts

    def enter(self, pod: Pod, container: Container, gpus: list[int], user: int | None) -> Entered:
        """Make the share of a container that is about to start on the cards *gpus*.

        Raises:
            ConfigError: when what it asks for cannot be held.
            NoFront: when this node lacks what would hold it.
            OSError: when its file cannot be made.
        """
        ask = _asked(pod, container)
        if ask is None or not gpus:
            return Entered()
        if ask.isolation == "timeslice":
            return Entered(remark=_NOT_HELD)
        if ask.isolation == "mps":
            return self._mps(container.name, ask, len(gpus))
        found = front.find()
        uuids = {card.index: card.uuid for card in self._cards}
        meta = pod.metadata
        # A container that starts again keeps the size that its share was given since.
        before = self.shelf.grant(meta.uid, container.name)
        if before is not None:
            ask = replace(ask, memory=before.memory, compute=before.compute)
        grant = Grant(
            namespace=meta.namespace,
            pod=meta.name,
            container=container.name,
            uid=meta.uid,
            cards=[uuids[index] for index in gpus],
            memory=ask.memory,
            compute=ask.compute,
            policy=ask.policy,
            offline=ask.offline,
        )
        entered = self._entered(found, self.shelf.put(grant, user))
        told = variables(
            meta.annotations.get(names.DIALECT_ANNOTATION, ""),
            memory=ask.memory // MIB,
            compute=ask.compute,
            cards=gpus,
            card_memory=next((card.memory for card in self._cards if card.index in gpus), 0),
            pod=_sum(pod)[0],
        )
        return replace(entered, variables=(*entered.variables, *told.items()))

    def _mps(self, container: str, ask: Ask, cards: int) -> Entered:
        """Return what makes a container a client of this node's MPS daemon, within its share."""
        pipes = Path(os.environ.get(PIPES, MPS))
        if not (pipes / "control").exists():
            raise ConfigError(
                f"container {container}: {names.GPU_ISOLATION_ANNOTATION}: given 'mps'; no MPS "
                f"daemon has its pipes in {pipes}; start nvidia-cuda-mps-control -d on the node "
                "before it joins, or use lease"
            )
        seen = PLACE / "mps" if self._mounts else pipes
        told = {PIPES: str(seen)}
        if ask.compute:
            told["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(ask.compute)
        if ask.memory:
            limit = -(-ask.memory // MIB)
            told["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(
                f"{number}={limit}M" for number in range(cards)
            )
        mounts = (_mount(pipes, seen),) if self._mounts else ()
        return Entered(mounts, tuple(told.items()))

    def sizes(self, pod: Pod) -> dict[str, Size]:
        """Return by container the shares that have another size than the pod's spec says."""
        found = {}
        for one in pod.spec.containers:
            grant = self.shelf.grant(pod.metadata.uid, one.name)
            if grant is not None and _size(grant) != size_of(one.resources):
                found[one.name] = _size(grant)
        return found

    def resize(self, pod: Pod) -> Resized | None:
        """Hold a share to the size that the scheduler granted; None when there is nothing to do."""
        annotations, conditions = pod.metadata.annotations, pod.status.conditions
        granted, done = (answer(annotations, conditions, kind) for kind in (GRANTED, HELD))
        if granted is None or granted.status != "True" or done is not None:
            return None
        wanted = wish(annotations)
        if wanted is None:
            return None
        by = _held_by(pod)
        if by != "lease":
            text = f"{names.GPU_ISOLATION_ANNOTATION} is {by}: the share keeps its size"
            return Resized(False, "NotSupported", answered(annotations, text))
        old = self.shelf.grant(pod.metadata.uid, wanted.container)
        if old is None:
            return None  # it takes its new size once it has started
        size = wanted.of(_size(old))
        memory = old.memory if size.memory == _size(old).memory else size.memory * MIB
        new = msgspec.structs.replace(old, memory=memory, compute=size.compute)
        try:
            beyond = self.shelf.resize(old, new)
        except OSError as error:  # a container can write its share's file
            text = f"the file of the share cannot be used: {error}"
            return Resized(False, "NotHeld", answered(annotations, text))
        if beyond:
            text = (
                f"container {wanted.container} uses {-(-beyond // MIB)} MiB of a card, which is "
                f"more than the {size.memory} MiB that its share is to have; it keeps "
                f"{in_words(_size(old))}"
            )
            return Resized(False, "BelowUse", answered(annotations, text))
        return Resized(True, "Resized", answered(annotations, in_words(size)))

    def drop(self, uid: str) -> None:
        """Remove the shares of a pod."""
        self.shelf.drop(uid)

    def _entered(self, found: front.Front, share: Path) -> Entered:
        libraries = found.directory
        if not self._mounts:
            told = front.told(share, found.cuda, found.nvml)
            return Entered((), tuple(told.items()), str(libraries))
        own = [path for path in _files(share) if path != share]
        mounts = (
            _mount(libraries, PLACE / "front", read_only=True),
            # The container reads what it was granted; it writes its account and its bell.
            _mount(share, front.inside(PLACE, share), read_only=True),
            *(_mount(path, front.inside(PLACE, path)) for path in own),
        )
        told = front.told(front.inside(PLACE, share), found.cuda, found.nvml)
        return Entered(mounts, tuple(told.items()), str(PLACE / "front"))


def taken(pod: Pod, others: Iterable[tuple[Pod, list[int]]], cards: Sequence[Card]) -> set[int]:
    """Return the cards on which *pod* has no room beside the *others* and their cards."""
    mine = _sum(pod)
    used: dict[int, tuple[int, int]] = {}
    full: set[int] = set()
    for other, gpus in others:
        theirs = _sum(other)
        for index in gpus:
            memory, compute = used.get(index, (0, 0))
            used[index] = (memory + theirs[0], compute + theirs[1])
            if not any(theirs) or not any(mine) or _held_by(other) != _held_by(pod):
                full.add(index)
    room = {card.index: card.memory for card in cards}
    for index, (memory, compute) in used.items():
        over = memory + mine[0] > room.get(index, 0) > 0 or compute + mine[1] > 100
        if over:
            full.add(index)
    return full


def _sum(pod: Pod) -> tuple[int, int]:
    """Return MiB and hundredths that a pod takes of each of its cards; zeros when it takes all."""
    asks = [_lenient(pod, one) for one in pod.spec.containers if not whole_asked(one.resources)]
    known = [one for one in asks if one is not None]
    return sum(one.memory for one in known), sum(one.compute for one in known)


def _lenient(pod: Pod, container: Container) -> Size | None:
    """Return what a container's share counts, also where the request for it is malformed.

    Whole cards are no share.
    """
    whole = _held_by(pod) == "whole"
    try:
        if whole or asked(container.resources, {}) is None:
            return None
    except BadAsk:
        return None
    meta, seen = pod.metadata, pod.status
    return counted(
        container.name,
        container.resources,
        meta.annotations,
        seen.conditions,
        seen.container_statuses,
    )


def _size(grant: Grant) -> Size:
    return Size(-(-grant.memory // MIB), grant.compute)


def _held_by(pod: Pod) -> str:
    return pod.metadata.annotations.get(names.GPU_ISOLATION_ANNOTATION, "lease")


def _asked(pod: Pod, container: Container) -> Ask | None:
    try:
        return asked(container.resources, pod.metadata.annotations)
    except BadAsk as error:
        raise ConfigError(f"container {container.name}: {error}") from error


def _mount(source: Path, target: Path, *, read_only: bool = False) -> Orders:
    return {"source": str(source), "target": str(target), "read_only": read_only}
