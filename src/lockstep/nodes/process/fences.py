"""Keeping a container off the cards that it was not granted."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from lockstep.api.names import GPU
from lockstep.devices.core.holders import asked, by_container
from lockstep.devices.core.model import Card
from lockstep.nodes.process.facts import Role, containers_of
from lockstep.nodes.process.spec import Pod

NOTHING = "/dev/null"
"""What a container sees in place of a card's device file."""


def cards_by_container(pod: Pod, given: list[int], resource: str = GPU) -> Mapping[str, list[int]]:
    """Return the indices of each container's cards, or of its other devices.

    Containers that run together take theirs in order; one that runs before them takes the first.
    """
    known = containers_of(pod)
    together = [(one.name, one.resources) for one, role in known if role is not Role.INIT]
    found = by_container(together, given, resource)
    before = [one for one, role in known if role is Role.INIT]
    return found | {one.name: given[: asked(one.resources, resource)] for one in before}


def shut(cards: Iterable[Card], granted: Collection[int]) -> list[str]:
    """Return the device files, as far as there are any, of the cards that are not granted."""
    known = list(cards)
    open_ = {node for card in known if card.index in granted for node in card.nodes}
    files = dict.fromkeys(node for card in known for node in card.nodes if node not in open_)
    return [one for one in files if _device(one)]


def denials(files: Iterable[str]) -> tuple[str, ...]:
    """Return device files as a control group names them: ``c 195:0``."""
    numbers = [found for one in files if (found := _device(one)) is not None]
    return tuple(f"c {os.major(one)}:{os.minor(one)}" for one in numbers)


def _device(path: str) -> int | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_rdev if stat.S_ISCHR(found.st_mode) else None
