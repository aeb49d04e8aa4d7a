"""The CDI specification by which a container runtime gives a container the devices of a claim."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from lockstep.api.claims import DRIVER
from lockstep.compat.vendors import VENDORS
from lockstep.devices.core.model import Card

Json = dict[str, Any]

VERSION: Final = "0.3.0"
"""The lowest that holds all of it: runtimes refuse what is newer than they are."""
KIND: Final = f"{DRIVER}/claim"


def file_name(uid: str) -> str:
    """Return the name of a claim's file."""
    return f"{DRIVER}-{uid}.json"


def device_of(uid: str, request: str) -> str:
    """Return the CDI device of one request of a claim."""
    return f"{KIND}={_name(uid, request)}"


def spec_of(uid: str, given: Mapping[str, Sequence[Card]], exists: Callable[[str], bool]) -> Json:
    """Return the specification of a claim: a device for each request, with all cards of it.

    *given* are the cards by request. ``NVIDIA_VISIBLE_DEVICES`` is ``void``, so that a runtime of
    the vendor adds no other cards; the device files are what a container gets.
    """
    return {
        "cdiVersion": VERSION,
        "kind": KIND,
        "devices": [
            {"name": _name(uid, request), "containerEdits": _edits(request, cards, exists)}
            for request, cards in given.items()
        ],
    }


def _edits(request: str, cards: Sequence[Card], exists: Callable[[str], bool]) -> Json:
    vendor = next(one for one in VENDORS if one.name == cards[0].vendor)
    files = dict.fromkeys([*(file for card in cards for file in card.nodes), *vendor.shared])
    name = re.sub(r"\W", "_", request).upper()
    edits: Json = {
        "env": [
            "NVIDIA_VISIBLE_DEVICES=void",
            f"LOCKSTEP_DEVICES_{name}={','.join(card.uuid for card in cards)}",
        ]
    }
    if nodes := [{"path": file} for file in files if exists(file)]:
        edits["deviceNodes"] = nodes
    return edits


def _name(uid: str, request: str) -> str:
    return f"{uid}-{request.replace('/', '-')}"
