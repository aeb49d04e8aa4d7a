"""The container's view of the file system: volumes where it wants them, the host's elsewhere."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from lockstep.nodes.process.shim.calls import (
    MNT_DETACH,
    MS_BIND,
    MS_REC,
    PIVOT_ROOT,
    Refused,
    bind,
    check,
    libc,
    mount,
)


class View:
    """The mounts of one container, made in its own namespace."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self.volumes: list[str] = []
        self.made: set[str] = set()
        self.shown: dict[str, str] = {}
        """Where the container sees what lies where on the host."""

    def mount_all(self, mounts: list[dict[str, Any]]) -> None:
        """Mount every volume where the container wants it, parents before children.

        Raises:
            Refused: when the kernel or the file system says no.
        """
        ordered = sorted(mounts, key=lambda one: str(one["target"]).count("/"))
        places = {one["target"]: _place(one["target"]) for one in ordered}
        # Copies of the host's directories come first: later a volume may lie over the sources.
        for one in ordered:
            place = places[one["target"]]
            if not any(_below(place, other) for other in places.values()):
                self.require(place, one["source"])
        if ordered:
            os.makedirs(self.scratch, exist_ok=True)
        self.scratch = _in_sight(self.scratch, places)
        sources = [_in_sight(one["source"], places) for one in ordered]
        shown = [os.path.realpath(one["source"]) for one in ordered]
        for one, source, seen in zip(ordered, sources, shown, strict=True):
            place = _place(one["target"])
            self.require(place, source)
            bind(source, place, read_only=one["read_only"])
            self.volumes.append(place)
            self.shown[seen] = place

    def require(self, place: str, source: str) -> None:
        """Make the mount point *place* for *source* exist."""
        if not os.path.lexists(place):
            self.make_room(place, directory=os.path.isdir(source))

    def hide_all(self, directories: list[str]) -> None:
        """Show each of *directories* empty, also where a volume shows it another time.

        Raises:
            Refused: when the kernel says no.
        """
        if not directories:
            return
        empty = os.path.join(self.scratch, "hidden")
        os.makedirs(empty, mode=0o755, exist_ok=True)
        # Once one of them is hidden, the empty directory itself may be out of sight.
        fd = os.open(empty, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for directory in directories:
            places = [directory]
            for source, place in self.shown.items():
                if directory.startswith(source.rstrip("/") + "/"):
                    places.append(os.path.join(place, os.path.relpath(directory, source)))
            for place in places:
                if os.path.isdir(place):
                    mount(f"/proc/self/fd/{fd}", place, MS_BIND)
        os.close(fd)

    def make_room(self, target: str, *, directory: bool) -> None:
        """Make the mount point *target* exist, without writing into the host's directories."""
        missing = [target]
        while not os.path.isdir(base := os.path.dirname(missing[-1])):
            missing.append(base)
        if not self.ours(base):
            self.mirror(base)
        for path in reversed(missing):
            if path == target and not directory:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
            else:
                os.mkdir(path)
                self.made.add(path)

    def ours(self, directory: str) -> bool:
        """Tell whether *directory* is a volume's or made here, and so may be written to."""
        inside = any(directory == one or directory.startswith(one + "/") for one in self.volumes)
        return inside or directory in self.made

    def mirror(self, base: str) -> None:
        """Replace *base*, for this container alone, by a copy whose entries are the originals."""
        copy = os.path.join(self.scratch, str(len(self.made)))
        os.makedirs(copy)
        about = os.stat(base)
        os.chmod(copy, about.st_mode & 0o7777)
        with contextlib.suppress(OSError):
            os.chown(copy, about.st_uid, about.st_gid)
        mount(copy, copy, MS_BIND)
        for entry in os.scandir(base):
            place = os.path.join(copy, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
                continue
            if entry.is_dir():
                os.mkdir(place)
            else:
                os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            bind(entry.path, place)
        if base == "/":
            pivot(copy)
        else:
            mount(copy, base, MS_BIND | MS_REC)
        self.made.add(base)


def _place(target: str) -> str:
    """Return where *target* lies, following links."""
    parent = os.path.realpath(os.path.dirname(target))
    return os.path.realpath(os.path.join(parent, os.path.basename(target)))


def _below(path: str, above: str) -> bool:
    return path.startswith(above.rstrip("/") + "/") and path != above


def _in_sight(path: str, places: dict[str, str]) -> str:
    """Return *path*, or a name that reaches it once volumes lie over *places*.

    A pod may mount ``/tmp`` while its volumes lie in ``/tmp/data``.
    """
    if not any(_below(os.path.realpath(path), one) for one in places.values()):
        return path
    return f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"


def pivot(root: str) -> None:
    """Make *root* the root of this namespace and let go of the old one.

    Raises:
        Refused: when the kernel says no or the machine's call number is not known.
    """
    os.chdir(root)
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise Refused(f"changing the root is not known for {os.uname().machine}")
    check(libc.syscall(number, b".", b"."), "change the root")
    check(libc.umount2(b".", MNT_DETACH), "let go of the old root")
    os.chdir("/")
