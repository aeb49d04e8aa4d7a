"""Device files that an administrator has handed out, as a ConfigMap says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from lockstep.api.wire import Wire
from lockstep.devices.core.model import Card

CONFIG: Final = "lockstep-device-files"
"""The ConfigMap, in Lockstep's own namespace."""
KEY: Final = "devices.yaml"
VENDOR: Final = "file"
"""Stands in cards for devices of which nothing is known but their files."""
_RESOURCE: Final = re.compile(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_OWN: Final = ("kubernetes.io", "lockstep.dev")


class BadRow(ValueError):
    """A row cannot be used; the message names field, value and remedy."""


class Row(Wire, frozen=True):
    """Device files that are handed out under one name; each file is one device."""

    resource: str
    files: list[str]
    """Paths below ``/dev``, with ``*`` and ``?``."""


def rows(text: str, reserved: Iterable[str] = ()) -> list[Row]:
    """Return the rows of a ConfigMap.

    Raises:
        BadRow: when one is wrong; *reserved* resources are handed out already.
    """
    try:
        found = msgspec.yaml.decode(text or "[]", type=list[Row])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadRow(f"{CONFIG} {KEY}: {error}; write a list of resource and files") from None
    seen = set(reserved)
    for place, row in enumerate(found):
        where = f"{CONFIG} {KEY}[{place}]"
        domain = row.resource.partition("/")[0]
        if not _RESOURCE.fullmatch(row.resource) or domain.endswith(_OWN):
            raise BadRow(f"{where}.resource: given {row.resource!r}; write example.com/fpga")
        if row.resource in seen:
            raise BadRow(f"{where}.resource: {row.resource} is handed out already; use another")
        seen.add(row.resource)
        for file in row.files:
            if not file.startswith("/dev/") or ".." in file.split("/"):
                raise BadRow(f"{where}.files: given {file!r}; write a path below /dev")
    return found


def cards(
    row: Row, matching: Callable[[str], Iterable[str]], usable: Callable[[str], bool]
) -> list[Card]:
    """Return the devices of a row: the usable files that match it, each once."""
    files = sorted({file for pattern in row.files for file in matching(pattern)})
    return [
        Card(
            index=index,
            uuid=file.strip("/").replace("/", "-"),
            vendor=VENDOR,
            resource=row.resource,
            nodes=[file],
        )
        for index, file in enumerate(filter(usable, files))
    ]


def in_order(available: Iterable[str], must: Sequence[str], size: int) -> list[str]:
    """Return *size* devices: those that there must be, then the others by name."""
    return [*must, *sorted(set(available) - set(must))][:size]
