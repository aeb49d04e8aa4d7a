"""How large a pod's shares of GPUs are: as its manifest says, and as they were changed since.

Who wants another size writes it into the annotation ``lockstep.dev/gpu-resize``. The scheduler
answers with the condition ``lockstep.dev/ShareGranted`` whether the cards have room for it. The
node then holds the share to the new size, shows that among the container's ``resources`` in the
pod's status, and says so with ``lockstep.dev/ShareHeld``. An answer belongs to a wish when its
message begins with the annotation's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lockstep.api.containers import ContainerStatus, Quantity, ResourceRequirements
from lockstep.api.meta import Condition
from lockstep.api.names import GPU_COMPUTE, GPU_MEMORY, GPU_RESIZE_ANNOTATION
from lockstep.api.quantity import to_int

GRANTED: Final = "lockstep.dev/ShareGranted"
"""The scheduler's answer to a wish."""
HELD: Final = "lockstep.dev/ShareHeld"
"""The node's."""
MIB: Final = 1 << 20
BYTES_FROM: Final = 1 << 20
"""Amounts of memory from here on are bytes: no GPU has as many MiB."""


class Size(msgspec.Struct, frozen=True):
    """What a container has of each of its cards; 0 is without limit."""

    memory: int = 0
    """MiB."""
    compute: int = 0
    """Hundredths."""


class Resize(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A wish: the size that a container's share is to have; 0 leaves a part of it as it is."""

    container: str
    memory: int = 0
    compute: int = 0
    asked: str = ""
    """When (RFC 3339): the same size asked for again is another wish."""

    def of(self, now: Size) -> Size:
        """Return what a share of the size *now* is to become."""
        return Size(self.memory or now.memory, self.compute or now.compute)


def wish(annotations: Mapping[str, str]) -> Resize | None:
    """Return the wish on a pod, if there is one.

    Raises:
        ValueError: when it cannot be read, or asks for what no card has.
    """
    text = annotations.get(GPU_RESIZE_ANNOTATION)
    if not text:
        return None
    try:
        found = msgspec.json.decode(text, type=Resize)
    except msgspec.DecodeError as error:
        raise ValueError(f"it cannot be read: {error}") from error
    if found.memory < 0 or not 0 <= found.compute <= 100:
        raise ValueError("memory is a number of MiB, compute one of hundredths, at most 100")
    return found


def answer(
    annotations: Mapping[str, str], conditions: Iterable[Condition], kind: str
) -> Condition | None:
    """Return the condition of such a *kind* that answers the wish on a pod."""
    text = annotations.get(GPU_RESIZE_ANNOTATION)
    if not text:
        return None
    of_kind = (one for one in conditions if one.type == kind)
    return next((one for one in of_kind if one.message.startswith(text)), None)


def answered(annotations: Mapping[str, str], words: str) -> str:
    """Return the message of a condition that answers the wish with some *words*."""
    return f"{annotations.get(GPU_RESIZE_ANNOTATION, '')}: {words}"


def words_of(annotations: Mapping[str, str], condition: Condition) -> str:
    """Return what an answer says, without the wish that it belongs to."""
    text = annotations.get(GPU_RESIZE_ANNOTATION, "")
    return condition.message.removeprefix(text).removeprefix(": ")


def size_of(resources: ResourceRequirements) -> Size:
    """Return the share that a container asks for of each card."""
    asked = {**resources.requests, **resources.limits}
    memory = to_int(asked.get(GPU_MEMORY, 0))
    return Size(
        -(-memory // MIB) if memory >= BYTES_FROM else memory, to_int(asked.get(GPU_COMPUTE, 0))
    )


def held(container: str, resources: ResourceRequirements, seen: Iterable[ContainerStatus]) -> Size:
    """Return the size that a container's share has, by its manifest and its pod's status."""
    told = next((one.resources for one in seen if one.name == container), ResourceRequirements())
    changed, first = size_of(told), size_of(resources)
    return Size(changed.memory or first.memory, changed.compute or first.compute)


def counted(
    container: str,
    resources: ResourceRequirements,
    annotations: Mapping[str, str],
    conditions: Iterable[Condition],
    seen: Iterable[ContainerStatus],
) -> Size:
    """Return what is to be counted of a container's share: what it has, and what it was granted.

    While it changes that is the larger of both.
    """
    now = held(container, resources, seen)
    told = list(conditions)
    granted, done = (answer(annotations, told, kind) for kind in (GRANTED, HELD))
    if granted is None or granted.status != "True" or (done and done.status == "False"):
        return now
    wanted = wish(annotations)
    if wanted is None or wanted.container != container:
        return now
    new = wanted.of(now)
    return Size(max(now.memory, new.memory), max(now.compute, new.compute))


def resized(resources: ResourceRequirements, size: Size) -> ResourceRequirements:
    """Return what a container asks for with its share of another size."""
    if size == size_of(resources):
        return resources
    share: dict[str, Quantity] = amounts(size)
    fresh = {**resources.limits, **share}
    return msgspec.structs.replace(
        resources,
        limits=fresh,
        requests={name: fresh.get(name, value) for name, value in resources.requests.items()},
    )


def amounts(size: Size) -> dict[str, Quantity]:
    """Return a size as amounts of resources; what is 0 is left out."""
    found: dict[str, Quantity] = {GPU_MEMORY: size.memory, GPU_COMPUTE: size.compute}
    return {name: amount for name, amount in found.items() if amount}


def in_words(size: Size) -> str:
    """Return a size for people to read."""
    memory = f"{size.memory} MiB" if size.memory else "memory without limit"
    compute = f"{size.compute} %" if size.compute else "compute without limit"
    return f"{memory}, {compute}"
