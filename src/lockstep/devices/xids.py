"""The Xids of this machine's cards: kept over restarts of the agent, until a reset or a boot."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from lockstep.api.wire import Wire
from lockstep.keys.files import BOOT_ID, replace_file

log = logging.getLogger(__name__)

KEYS: Final = frozenset({"xid", "xid_count"})
FATAL: Final = frozenset({48, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140})
"""Xids after which a card must not be used before it was reset or checked."""


class Told(Wire, frozen=True):
    """What one card has told: its last Xid, how many, and the fatal one that still holds."""

    last: int = 0
    count: int = 0
    fatal: int = 0

    @property
    def trouble(self) -> str:
        """Say why the card must not be used; empty when it may."""
        return f"Xid {self.fatal}" if self.fatal else ""

    @property
    def values(self) -> dict[str, float]:
        """Return the readings that the exporter shows, by the keys of ``core.fields``."""
        return {"xid": float(self.last), "xid_count": float(self.count)}


class _File(Wire, frozen=True):
    boot: str = ""
    cards: dict[str, Told] = {}


class Xids:
    """What the cards have told, by UUID; in *path* where there is one."""

    def __init__(self, path: Path | None = None, boot_id: Path = BOOT_ID) -> None:
        self._path = path
        self._boot = boot_id.read_text().strip() if boot_id.exists() else ""
        self._cards = self._read()

    def of(self, uuid: str) -> Told:
        """Return what a card has told."""
        return self._cards.get(uuid, Told())

    def add(self, uuid: str, code: int) -> None:
        """Take up an Xid of a card."""
        before = self.of(uuid)
        fatal = code if code in FATAL else before.fatal
        self._cards[uuid] = Told(code, before.count + 1, fatal)
        self._write()

    def clear(self, uuids: Collection[str]) -> None:
        """Let cards be used again; what they have told stays counted."""
        for uuid in uuids:
            if self.of(uuid).fatal:
                self._cards[uuid] = replace(self.of(uuid), fatal=0)
        self._write()

    def _read(self) -> dict[str, Told]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except (OSError, msgspec.DecodeError) as error:
            log.warning(
                "%s is not used: %s. Cards are judged by what they tell.", self._path, error
            )
            return {}
        # A boot resets all cards.
        return dict(kept.cards) if kept.boot == self._boot else {}

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            replace_file(self._path, msgspec.json.encode(_File(self._boot, self._cards)))
        except OSError as error:
            log.warning("%s cannot be written: %s. A restart forgets Xids.", self._path, error)
