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

    def drop(self, uid: str) -> None:
        """Remove the shares of a pod."""
        shutil.rmtree(self.root / uid, ignore_errors=True)

    def grants(self) -> Iterator[tuple[Grant, Path]]:
        """Yield every share with its file; what cannot be read is left out."""
        for about in sorted(self.root.glob("*/*.json")):
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                grant = msgspec.json.decode(about.read_bytes(), type=Grant)
                yield grant, about.with_suffix(".share")
