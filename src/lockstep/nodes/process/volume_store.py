"""Volumes on this machine: making, filling, finding and removing them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from lockstep.api import quantity
from lockstep.nodes.process import paths
from lockstep.nodes.process.claims import Claimed
from lockstep.nodes.process.environment import Around, ConfigError
from lockstep.nodes.process.shim.calls import MNT_DETACH, Refused, libc, mount
from lockstep.nodes.process.spec import EmptyDir, HostPath, Pod, Volume
from lockstep.nodes.process.volumes import File, files, secret_inside

_KINDS = {
    "Directory": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}
_SECRETS_SIZE = 4 << 20
ACCESS = "kube-api-access"
"""The volume with the token of a pod's service account that the node adds."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  a directory of the user's own is made in it


class VolumeStore:
    """The volumes of one pod, below its directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.remarks: list[str] = []
        """What could not be done as asked, for events."""

    def make(self, pod: Pod, around: Around, claims: Mapping[str, Claimed] | None = None) -> None:
        """Make every volume of *pod*; those that are there stay.

        *claims* are the directories that its claims stand for, by name.

        Raises:
            ConfigError: when something that a volume refers to is not there.
            OSError, Refused: when the machine says no.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        for volume in pod.spec.volumes:
            if volume.host_path is not None:
                make_host_path(volume.host_path)
                continue
            place = self.root / paths.label(volume.name)
            if volume.persistent_volume_claim is not None:
                self._link(place, (claims or {})[volume.persistent_volume_claim.claim_name])
                continue
            self._make_directory(place, volume)
            content = files(volume, around)
            if content is not None:
                write_files(place, content, pod.spec.security_context.fs_group)
            elif pod.spec.security_context.fs_group is not None:
                share(place, pod.spec.security_context.fs_group)

    def refresh(self, pod: Pod, around: Around) -> None:
        """Bring the volumes made from objects up to date.

        Raises:
            ConfigError: when something that a volume refers to is not there any more.
        """
        for volume in pod.spec.volumes:
            content = files(volume, around)
            if content is not None:
                place = self.root / paths.label(volume.name)
                write_files(place, content, pod.spec.security_context.fs_group)

    def _link(self, place: Path, claimed: Claimed) -> None:
        """Let *place* stand for a directory of the machine; it stays what it was at first."""
        if claimed.read_only:
            _mark(place).touch()
        if not place.is_symlink():
            place.symlink_to(claimed.path)

    def read_only(self, volume: Volume) -> bool:
        """Tell whether *volume* is read-only for all containers, also where one asks to write."""
        claim = volume.persistent_volume_claim
        place = self.root / paths.label(volume.name)
        return claim is not None and (claim.read_only or _mark(place).exists())

    def _make_directory(self, place: Path, volume: Volume) -> None:
        if place.is_mount() or (place.is_symlink() and place.exists()):
            return
        if place.is_symlink():  # the machine was started anew, and forgot what was in memory
            place.unlink()
        place.mkdir(exist_ok=True)
        secret = secret_inside(volume)
        empty = volume.empty_dir or EmptyDir()
        if secret or empty.medium == "Memory":
            size = _SECRETS_SIZE if secret else _size(empty)
            self._keep_in_memory(place, volume, size, 0o755 if secret else 0o777)
        elif volume.empty_dir is not None:
            place.chmod(0o777)

    def _keep_in_memory(self, place: Path, volume: Volume, size: int, mode: int) -> None:
        """Put *place* into memory: a file system of its own, else a corner of the machine's."""
        options = f"mode={mode:o}" + (f",size={size}" if size else "")
        try:
            if volume.name == ACCESS:  # each pod has one: a mount each would outlive a killed node
                raise Refused("a corner is enough")
            mount("tmpfs", str(place), 0, "tmpfs", options)
        except Refused as error:
            place.chmod(0o700)
            corner = self._corner / place.name
            try:
                shared_memory().mkdir(mode=0o700, exist_ok=True)
                corner.mkdir(parents=True, exist_ok=True)
                corner.chmod(mode)
            except OSError:
                self.remarks.append(f"volume {volume.name} is on disk, not in memory: {error}")
                return
            place.rmdir()
            place.symlink_to(corner)
            if volume.empty_dir is not None and size:
                self.remarks.append(f"the size limit of volume {volume.name} is not enforced")

    @property
    def _corner(self) -> Path:
        """Return where volumes in memory lie when none can be mounted; it is the user's own."""
        return shared_memory() / self.root.parent.name

    def path(self, volume: Volume, sub_path: str) -> Path:
        """Return what is to be mounted for *volume*; a missing sub-path is made.

        Raises:
            paths.UnsafeName: when the sub-path leads out of the volume.
        """
        root = (self.root / paths.label(volume.name)).resolve()
        if volume.host_path is not None:
            root = Path(volume.host_path.path)
        if not sub_path:
            return root
        place = paths.inside(root, sub_path)
        if not place.exists():
            if volume.persistent_volume_claim is not None:
                raise ConfigError(f"volume {volume.name} has no {sub_path}")
            place.mkdir(parents=True)
        return place

    def oversized(self, pod: Pod) -> str | None:
        """Return which limit of a directory on disk is exceeded, in words; none when none is."""
        for volume in pod.spec.volumes:
            empty = volume.empty_dir
            if empty is None or empty.size_limit is None or empty.medium == "Memory":
                continue
            if usage(self.root / volume.name) > quantity.to_int(empty.size_limit):
                return (
                    f'Usage of EmptyDir volume "{volume.name}" exceeds the limit'
                    f' "{empty.size_limit}".'
                )
        return None

    def empty_memory(self) -> None:
        """Let go of the volumes in memory and what is in them."""
        for place in self.root.iterdir() if self.root.exists() else ():
            if place.is_symlink():
                place.unlink()
            elif place.is_mount():
                libc.umount2(os.fsencode(place), MNT_DETACH)
        shutil.rmtree(self._corner, ignore_errors=True)

    def remove(self) -> None:
        """Remove the volumes and what is in them."""
        self.empty_memory()
        shutil.rmtree(self.root, ignore_errors=True)


def shared_memory() -> Path:
    """Return the user's own directory in memory; no container sees what is in it."""
    return SHARED_MEMORY / f"lockstep-{os.geteuid()}"


def _mark(place: Path) -> Path:
    """Return the file whose presence says that the volume at *place* is read-only."""
    return place.with_name(f".{place.name}.read-only")


def _size(empty: EmptyDir) -> int:
    return 0 if empty.size_limit is None else quantity.to_int(empty.size_limit)


def usage(root: Path) -> int:
    """Return the bytes on disk below *root*."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(directory) / name).lstat().st_blocks * 512
    return total


def share(place: Path, group: int) -> None:
    """Give *place* to *group*, and what is made in it too."""
    if os.geteuid() == 0:
        os.chown(place, -1, group)
        place.chmod(0o2777 & (place.stat().st_mode | 0o2770))


def make_host_path(volume: HostPath) -> None:
    """Check the host's path *volume*, and make it where its type says so.

    Raises:
        ConfigError: when it is not of the type that the pod wants.
    """
    place = Path(volume.path)
    if volume.type == "DirectoryOrCreate" and not place.exists():
        place.mkdir(mode=0o755, parents=True)
    elif volume.type == "FileOrCreate" and not place.exists():
        place.touch(mode=0o644)
    kind = volume.type.removesuffix("OrCreate")
    if not kind:
        if not place.exists():
            raise ConfigError(f"hostPath {volume.path} does not exist")
        return
    if kind not in _KINDS:
        raise ConfigError(f"hostPath type {volume.type!r} is not known")
    fits, name = _KINDS[kind]
    if not place.exists() or not fits(place.stat().st_mode):
        raise ConfigError(f"hostPath type check failed: {volume.path} is not a {name}")


def write_files(root: Path, content: Iterable[File], group: int | None) -> None:
    """Let *root* hold exactly *content*; a reader sees the old files or the new, never a mixture.

    The files lie in a directory that ``..data`` points to, and are seen through links, so that
    one rename swaps them all.
    """
    wanted = {one.path: one for one in content}
    current = root / "..data"
    if current.exists() and _same(current, wanted):
        return
    fresh = root / f"..{time.time_ns()}"
    fresh.mkdir(mode=0o755)
    for one in wanted.values():
        _write(fresh / one.path, one, group)
    link = root / "..data_new"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    old = current.resolve() if current.is_symlink() else None
    link.replace(current)
    tops = {path.split("/")[0] for path in wanted}
    for name in tops:
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"..data/{name}")
    for entry in list(root.iterdir()):
        if not entry.name.startswith("..") and entry.name not in tops:
            entry.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _same(root: Path, wanted: dict[str, File]) -> bool:
    there = {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()}
    return there == set(wanted) and all(
        (root / path).read_bytes() == one.data for path, one in wanted.items()
    )


def _write(place: Path, file: File, group: int | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(file.data)
        mode = file.mode & 0o777
        if group is not None and os.geteuid() == 0:
            os.fchown(fd, -1, group)
            mode |= 0o440
        os.fchmod(fd, mode)
