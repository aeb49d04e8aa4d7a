"""Where the shares of a node lie: by pod and container their files, and what they are.

The process that starts containers makes them; the node's agent grants by them.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from lockstep.devices.sharing import region
from lockstep.devices.sharing.core.leases import Policy
from lockstep.devices.sharing.region import Part
from lockstep.keys.files import replace_file


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

    def path(self, uid: str, container: str) -> Path:
        """Return the file of what a share was granted; its account and its bell are beside it."""
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
        replace_file(about, msgspec.json.encode(grant), durable=False)

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
        file = region.Region(self.path(old.uid, old.container))
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

    def settle(self, true: Callable[[Grant], Grant | None]) -> None:
        """Hand each share to the container that *true* names; None leaves it where it is."""
        for listed, _ in list(self.grants()):
            # One that changed hands in this loop has other places now.
            one = self.grant(listed.uid, listed.container)
            after = true(one) if one is not None else None
            if one is not None and after is not None:
                self.hand_over(one, after)

    def hand_over(self, before: Grant, after: Grant) -> None:
        """Make a share that was made for one container another's, its mapped file with it.

        A share that the other has already goes the opposite way at its own turn.
        """
        old, new = self.path(before.uid, before.container), self.path(after.uid, after.container)
        new.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        if new.exists():
            other = self.grant(after.uid, after.container) or after
            for kind in region.KINDS:
                aside = new.with_suffix(f"{kind}.swap")
                new.with_suffix(kind).rename(aside)
                old.with_suffix(kind).rename(new.with_suffix(kind))
                aside.rename(old.with_suffix(kind))
            moved = msgspec.structs.replace(before, places=other.places, cards=other.cards)
            self.note(moved)
        else:
            for kind in region.KINDS:
                old.with_suffix(kind).rename(new.with_suffix(kind))
            old.with_suffix(".json").unlink(missing_ok=True)
        self.note(after)

    def drop(self, uid: str) -> None:
        """Remove the shares of a pod."""
        shutil.rmtree(self.root / uid, ignore_errors=True)

    def _abouts(self) -> list[Path]:
        found: list[Path] = []
        for home in self.root.glob("*"):
            # It goes when its pod does, also between these two looks.
            with contextlib.suppress(OSError):
                found += home.glob("*.json")
        return sorted(found)

    def grants(self) -> Iterator[tuple[Grant, Path]]:
        """Yield every share with its file; what cannot be read is left out."""
        for about in self._abouts():
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                grant = msgspec.json.decode(about.read_bytes(), type=Grant)
                yield grant, about.with_suffix(".share")


def _used(file: region.Region, new: Grant) -> int:
    """Return what a share uses of its fullest card, where that is more than it is to have."""
    most = max((file.used(card) for card in range(len(new.cards))), default=0)
    return most if new.memory and most > new.memory else 0
