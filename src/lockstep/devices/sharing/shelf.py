"""Where the shares of a node lie: ``DIR/bell``, and by pod and container a file and what it is.

The process that starts containers makes them; the node's agent grants by them.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lockstep.devices.sharing import region
from lockstep.devices.sharing.core.leases import Policy
from lockstep.devices.sharing.region import Part

BELL: Final = "bell"
_PAGE: Final = 4096


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a share is, and what was granted; written by the node, never by the container."""

    namespace: str
    pod: str
    container: str
    uid: str
    cards: list[str]
    """UUIDs."""
    memory: int = 0
    """Bytes of each card; 0 is without limit."""
    compute: int = 0
    """Hundredths of each card; 0 is what others leave."""
    policy: Policy = "fixed"
    offline: bool = False
    places: list[str] = []
    """What kubelet gave the container for it; empty where there is no kubelet."""

    @property
    def key(self) -> str:
        """Return what tells it from all others."""
        return f"{self.uid}/{self.container}"

    @property
    def parts(self) -> list[Part]:
        """Return what its file says of each card."""
        compute = 0 if self.policy == "none" else self.compute
        return [Part(uuid, self.memory, compute) for uuid in self.cards]


class Shelf:
    """The shares below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def bell(self) -> Path:
        """Return the file on which the agent waits; it is made where it is missing."""
        path = self.root / BELL
        if not path.exists():
            self.root.mkdir(parents=True, exist_ok=True, mode=0o711)
            path.write_bytes(bytes(_PAGE))
            path.chmod(0o666)
        return path

    def path(self, uid: str, container: str) -> Path:
        """Return the file of a share."""
        return self.root / uid / f"{container}.share"

    def put(self, grant: Grant, owner: int | None = None) -> Path:
        """Make a share anew and return its file."""
        path = self.path(grant.uid, grant.container)
        region.create(path, grant.parts, owner)
        self.note(grant)
        return path

    def note(self, grant: Grant) -> None:
        """Write what a share is granted from now on."""
        about = self.path(grant.uid, grant.container).with_suffix(".json")
        fresh = about.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(grant))
        fresh.replace(about)

    def grant(self, uid: str, container: str) -> Grant | None:
        """Return what a container was granted, if it has a share."""
        about = self.path(uid, container).with_suffix(".json")
        try:
            return msgspec.json.decode(about.read_bytes(), type=Grant)
        except (OSError, msgspec.DecodeError):
            return None

    def resize(self, old: Grant, new: Grant) -> int:
        """Hold a share to another size from now on; return the bytes of a card it uses beyond.

        Where it uses more than it is to have, nothing changes.

        Raises:
            OSError: when its file cannot be written.
        """
        file = region.Region(self.path(old.uid, old.container), elsewhere=bool(old.places))
        beyond = _used(file, new)
        if beyond:
            return beyond
        self.note(new)
        file.limit(new.parts)
        # A program may have allocated meanwhile; from here on it meets the new limit.
        beyond = _used(file, new)
        if beyond:
            self.note(old)
            file.limit(old.parts)
        return beyond

    def hand_over(self, before: Grant, after: Grant) -> None:
        """Make a share that was made for one container another's, its mapped file with it.

        A share that the other has already goes the opposite way at its own turn.
        """
        old, new = self.path(before.uid, before.container), self.path(after.uid, after.container)
        new.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        if new.exists():
            other = self.grant(after.uid, after.container) or after
            aside = new.with_suffix(".swap")
            new.rename(aside)
            old.rename(new)
            aside.rename(old)
            moved = msgspec.structs.replace(before, places=other.places, cards=other.cards)
            self.note(moved)
        else:
            old.rename(new)
            old.with_suffix(".json").unlink(missing_ok=True)
        self.note(after)

    def drop(self, uid: str) -> None:
        """Remove the shares of a pod."""
        shutil.rmtree(self.root / uid, ignore_errors=True)

    def grants(self) -> Iterator[tuple[Grant, Path]]:
        """Yield every share with its file; what cannot be read is left out."""
        for about in sorted(self.root.glob("*/*.json")):
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                grant = msgspec.json.decode(about.read_bytes(), type=Grant)
                yield grant, about.with_suffix(".share")


def _used(file: region.Region, new: Grant) -> int:
    """Return what a share uses of its fullest card, where that is more than it is to have."""
    most = max((file.used(card) for card in range(len(new.cards))), default=0)
    return most if new.memory and most > new.memory else 0
