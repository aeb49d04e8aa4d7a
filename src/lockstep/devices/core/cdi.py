"""The CDI specifications by which a container runtime gives a container devices: those of a claim,
or cards that the device plugin handed out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lockstep.api.claims import DRIVER
from lockstep.api.wire import Json
from lockstep.compat.vendors import VENDORS
from lockstep.devices.core.model import Card

VERSION: Final = "0.3.0"
"""The lowest that holds all of it: runtimes refuse what is newer than they are."""
KIND: Final = f"{DRIVER}/claim"
CARD_KIND: Final = f"{DRIVER}/card"
CARDS_FILE: Final = f"{DRIVER}-cards.json"


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


def card_device(card: Card) -> str:
    """Return the CDI device of one card."""
    return f"{CARD_KIND}={card.uuid}"


def cards_spec(cards: Sequence[Card], exists: Callable[[str], bool]) -> Json:
    """Return the specification of cards: a device for each, with its files.

    Variables that name all cards of a container come from the device plugin.
    """
    return {
        "cdiVersion": VERSION,
        "kind": CARD_KIND,
        "devices": [
            {"name": card.uuid, "containerEdits": {"deviceNodes": nodes}}
            for card in cards
            if (nodes := [{"path": file} for file in files_of([card]) if exists(file)])
        ],
    }


def files_of(cards: Sequence[Card]) -> list[str]:
    """Return the device files of cards of one vendor, each once."""
    vendor = next((one for one in VENDORS if one.name == cards[0].vendor), None)
    shared = vendor.shared if vendor is not None else ()
    return list(dict.fromkeys([*(file for card in cards for file in card.nodes), *shared]))


def _edits(request: str, cards: Sequence[Card], exists: Callable[[str], bool]) -> Json:
    name = re.sub(r"\W", "_", request).upper()
    edits: Json = {
        "env": [
            "NVIDIA_VISIBLE_DEVICES=void",
            f"LOCKSTEP_DEVICES_{name}={','.join(card.uuid for card in cards)}",
        ]
    }
    if nodes := [{"path": file} for file in files_of(cards) if exists(file)]:
        edits["deviceNodes"] = nodes
    return edits


def _name(uid: str, request: str) -> str:
    # Before version 0.5.0 no name begins with a digit, as most UIDs do.
    return f"claim-{uid}-{request.replace('/', '-')}"
