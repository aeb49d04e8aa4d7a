"""What is checked of queues before they are created, changed or deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES, Queue, QueueSpec
from lockstep.api.queue_rules import flaws
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed

NAMED = 3
"""Children and gangs that a refusal names; the others are counted."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question for a slip in the name of a queue; empty where none is alike."""
    close = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def check_spec(name: str, spec: Mapping[str, Any], parent: QueueSpec | None = None) -> QueueSpec:
    """Return the spec as the scheduler reads it.

    Raises:
        BadInput: when it states what cannot be meant, or cannot be kept.
    """
    try:
        read = msgspec.convert(spec, QueueSpec)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"queue {name}: {error}", "nothing was sent; mend it and try again"
        ) from None
    if found := flaws(read, parent):
        raise BadInput(f"queue {name}: {'; '.join(found)}", "nothing was sent")
    return read


def check_place(name: str, spec: Mapping[str, Any], queues: Mapping[str, Queue]) -> None:
    """Check a queue against the others.

    Raises:
        BadInput: when its parent is missing or is part of it, or it states what cannot be kept.
    """
    above = spec.get("parent")
    if not above:
        check_spec(name, spec)
        return
    if above not in queues and above != name:
        raise BadInput(
            f"queue {name}: its parent {above} does not exist{did_you_mean(above, queues)}",
            f"`lockstep queue create {above}` creates it; nothing was sent",
        )
    seen, one = {name}, above
    while one in queues and one not in seen:
        seen.add(one)
        one = queues[one].spec.parent or ""
    if one == name:
        raise BadInput(
            f"queue {name}: it would be part of itself by way of {above}", "choose another parent"
        )
    check_spec(name, spec, queues[above].spec)


async def by_name(session: Session) -> dict[str, Queue]:
    """Return all queues."""
    return {one.metadata.name: one for one in (await session.client.list(QUEUES)).items}


async def check_unused(session: Session, names: Sequence[str]) -> None:
    """Check that no queue is left without its parent, and no gang that has nodes without its queue.

    Raises:
        CommandFailed: naming what is there.
    """
    queues, gangs = await asyncio.gather(by_name(session), session.client.list(GANGS))
    for name in names:
        children = [
            one
            for one, queue in sorted(queues.items())
            if queue.spec.parent == name and one not in names
        ]
        inside = [
            f"{one.metadata.namespace}/{one.metadata.name}"
            for one in gangs.items
            if one.spec.queue == name and one.status.bound
        ]
        told = [_listed(children, "child queue"), _listed(inside, "running gang")]
        if children or inside:
            raise CommandFailed(
                f"queue {name} has {' and '.join(filter(None, told))}; nothing was deleted",
                "move or end them first; --force deletes it all the same: children become top "
                "queues, what runs goes on, and what waits in it waits until it exists again",
            )


def _listed(found: Sequence[str], what: str) -> str:
    if not found:
        return ""
    more = len(found) - NAMED
    shown = ", ".join(found[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'} ({shown})"
