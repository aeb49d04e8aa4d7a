"""Which cards a pod gets: those the scheduler chose, or the lowest free ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from lockstep.api import names


@dataclass(frozen=True, slots=True)
class Kind:
    """What is handed out by index: its resource, the annotation with a pod's indices, its name."""

    resource: str
    annotation: str
    word: str


GPUS: Final = Kind(names.GPU, names.GPUS_ANNOTATION, "GPU")
NICS: Final = Kind(names.NICS, names.NICS_ANNOTATION, "NIC")


class NotEnough(Exception):
    """What a pod asks for is not there or not free."""


def chosen(annotation: str, kind: Kind = GPUS) -> list[int]:
    """Return the indices that ``lockstep.dev/gpus`` names, or the annotation of another *kind*.

    Raises:
        NotEnough: when it is not a list of indices.
    """
    try:
        return [int(part) for part in annotation.split(",")] if annotation else []
    except ValueError:
        raise NotEnough(
            f"the annotation {kind.annotation} is {annotation!r}, not a list of {kind.word} "
            "indices such as 0,1; remove it or let the scheduler write it"
        ) from None


def assign(
    annotation: str,
    wanted: int,
    present: Collection[int],
    used: Collection[int],
    kind: Kind = GPUS,
) -> list[int]:
    """Return the indices of a pod's GPUs, or of its devices of another *kind*.

    Raises:
        NotEnough: when what is asked for is not there or not free.
    """
    named = chosen(annotation, kind)
    if named:
        absent = sorted(set(named) - set(present))
        if absent:
            raise NotEnough(
                f"the annotation {kind.annotation} is {annotation!r}; "
                f"the node has no {kind.word} {', '.join(map(str, absent))}"
            )
        taken = sorted(set(named) & set(used))
        if taken:
            said = ", ".join(map(str, taken))
            raise NotEnough(f"{kind.word} {said} is in use by another pod")
        return named
    free = sorted(set(present) - set(used))
    if len(free) < wanted:
        raise NotEnough(f"{wanted} {kind.word}s requested, {len(free)} of {len(present)} are free")
    return free[:wanted]
