"""Sessions on a volume: generations of one kernel's state, signed, the newest one linked."""

from __future__ import annotations

import hmac
import os
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from lockstep.notebooks.inside.session_state import META

SIGNATURE: Final = "signature"
_CURRENT: Final = "current"
_PARTIAL: Final = ".partial"


class Refused(Exception):
    """A state that is there may not be loaded; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The states of one kernel, in a directory of its user's volume.

    A state counts once ``current`` leads to it, which one rename brings about: a process that is
    killed before leaves the older state in force.
    """

    root: Path
    key: bytes
    """The owner's key: nothing is loaded that it has not signed."""

    def begin(self) -> Path:
        """Return an empty directory for the next state.

        Raises:
            OSError: when the volume is full or gone.
        """
        place = self.root / f"{self._newest_number() + 1}{_PARTIAL}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, mode=0o700)
        return place

    def finish(self, partial: Path) -> int:
        """Make what is in *partial* the state that counts; return its generation.

        Raises:
            OSError: when the volume is full or gone; the older state stays in force then.
        """
        (partial / SIGNATURE).write_bytes(self._signature(partial))
        for one in (partial / SIGNATURE, partial):
            _settle(one)
        number = int(partial.name.removesuffix(_PARTIAL))
        partial.replace(self.root / str(number))
        link = self.root / f".{_CURRENT}"
        link.unlink(missing_ok=True)
        link.symlink_to(str(number))
        link.replace(self.root / _CURRENT)
        _settle(self.root)
        for other in self.root.iterdir():
            if other.is_dir() and not other.is_symlink() and other.name != str(number):
                shutil.rmtree(other, ignore_errors=True)
        return number

    def abandon(self, partial: Path) -> None:
        """Remove what was written of a state that is not to be."""
        shutil.rmtree(partial, ignore_errors=True)

    def newest(self, since: int = 0) -> Path | None:
        """Return the state that counts, if there is one of the generation *since* or later.

        Raises:
            Refused: when it is not what the owner's kernel has written.
        """
        link = self.root / _CURRENT
        if not link.is_symlink():
            return None
        name = str(link.readlink())
        if not name.isdigit():
            raise Refused(f"{link} leads to {name!r}, which no kernel has written")
        if int(name) < since:
            return None
        place = self.root / name
        try:
            given = (place / SIGNATURE).read_bytes()
            wanted = self._signature(place)
        except OSError as error:
            raise Refused(f"the state in {place} is not whole: {error.strerror}") from error
        if not hmac.compare_digest(given, wanted):
            raise Refused(f"the state in {place} was not signed by its owner's kernel")
        return place

    def _newest_number(self) -> int:
        try:
            names = [one.name for one in self.root.iterdir()]
        except FileNotFoundError:
            return 0
        return max((int(name) for name in names if name.isdigit()), default=0)

    def _signature(self, place: Path) -> bytes:
        """Return what signs a state: its meta names the sums of everything else in it."""
        return hmac.digest(self.key, (place / META).read_bytes(), sha256)


def _settle(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
