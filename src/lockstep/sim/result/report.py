"""A simulation as JSON, written piece by piece: its placements may be many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec

from lockstep.api.wire import Json
from lockstep.sim.result.record import Result

TOGETHER = 1024
"""Entries of one piece."""


def pieces(result: Result, figures: Json) -> Iterator[str]:
    """Yield the text of one JSON object: seed, figures, then a line for each entry of the lists.

    ``placements`` are sorted by start, job and rank; the end of one that lasted is null.
    """
    yield json.dumps({"seed": result.seed, **figures}, indent=1).removesuffix("\n}")
    lists: dict[str, Iterable[Json]] = {
        "placements": (stay._asdict() for stay in result.stays.in_order()),
        "waiting": ({"job": life.name, "reason": life.waiting} for life in result.lives.waiting),
        "communication": (
            {**one._asdict(), "ratio": round(one.ratio, 4)} for one in result.communication
        ),
    }
    for name, entries in lists.items():
        yield f',\n "{name}": ['
        yield from _entries(entries)
        yield "]"
    yield "\n}\n"


def _entries(entries: Iterable[Json]) -> Iterator[str]:
    encode, between = msgspec.json.Encoder().encode, "\n  "
    entries = iter(entries)
    for first in entries:
        together = chain([first], islice(entries, TOGETHER - 1))
        yield between + ",\n  ".join(encode(entry).decode() for entry in together)
        between = ",\n  "
    if between.startswith(","):
        yield "\n "
