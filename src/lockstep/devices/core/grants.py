"""Which cards a pod gets: those the scheduler chose, or the lowest free ones."""

from __future__ import annotations

from collections.abc import Collection


class NotEnough(Exception):
    """What a pod asks for is not there or not free."""


def chosen(annotation: str) -> list[int]:
    """Return the indices that ``lockstep.dev/gpus`` names.

    Raises:
        NotEnough: when it is not a list of indices.
    """
    try:
        return [int(part) for part in annotation.split(",")] if annotation else []
    except ValueError:
        raise NotEnough(
            f"the annotation lockstep.dev/gpus is {annotation!r}, not a list of GPU indices such "
            "as 0,1; remove it or let the scheduler write it"
        ) from None


def assign(
    annotation: str, wanted: int, present: Collection[int], used: Collection[int]
) -> list[int]:
    """Return the indices of a pod's GPUs.

    Raises:
        NotEnough: when what is asked for is not there or not free.
    """
    named = chosen(annotation)
    if named:
        absent = sorted(set(named) - set(present))
        if absent:
            raise NotEnough(
                f"the annotation lockstep.dev/gpus is {annotation!r}; "
                f"the node has no GPU {', '.join(map(str, absent))}"
            )
        taken = sorted(set(named) & set(used))
        if taken:
            raise NotEnough(f"GPU {', '.join(map(str, taken))} is in use by another pod")
        return named
    free = sorted(set(present) - set(used))
    if len(free) < wanted:
        raise NotEnough(f"{wanted} GPUs requested, {len(free)} of {len(present)} are free")
    return free[:wanted]
