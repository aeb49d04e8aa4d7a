"""The holder: keeps the kernel's end of each view, so that reads wait while the cache is replaced.

It is a process of its own that does nothing else: it mounts, hands the descriptor to the cache that
asks for it, and unmounts. Started as a script, so that it loads nothing but this file. Without a
cache it ends: at once where there is no view, else after ``ALONE`` seconds, and takes them away.

Started by a cache in a container it leaves that behind (``apart``): it would end with it.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

ALONE, ALONE_APART = 60.0, 3600.0
"""Seconds without a cache after which views go; a pod may be long in coming back."""
CGROUPS = Path("/sys/fs/cgroup")
GROUP = "lockstep-views"
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def mount(place: str, *, others: bool) -> int:
    """Mount a view at the directory *place* and return its descriptor.

    Raises:
        OSError: when this process may not.
    """
    options = "max_read=1048576,default_permissions"
    if os.geteuid() != 0:
        return _by_fusermount(place, f"ro,nosuid,nodev,{options}")
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    who = f"user_id={os.geteuid()},group_id={os.getegid()}"
    data = f"fd={fd},rootmode=40000,{who},{options}" + (",allow_other" if others else "")
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV
    if _libc.mount(b"lockstep-data", os.fsencode(place), b"fuse", flags, data.encode()) != 0:
        error = ctypes.get_errno()
        os.close(fd)
        raise OSError(error, os.strerror(error), place)
    return fd


def _by_fusermount(place: str, options: str) -> int:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = ["fusermount3", "-o", options, "--", place]
        environment = {**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}
        done = subprocess.run(  # noqa: S603  a fixed program, no shell
            command, env=environment, pass_fds=[theirs.fileno()], capture_output=True, check=False
        )
        if done.returncode != 0:
            raise OSError(f"{place}: {done.stderr.decode(errors='replace').strip()}")
        _, fds = receive(ours)
        return fds[0]


def unmount(place: str) -> None:
    """Take the view at *place* away, even while it is read; one that is gone is as good."""
    if os.geteuid() == 0:
        _libc.umount2(os.fsencode(place), MNT_DETACH)
    else:
        command = ["fusermount3", "-u", "-z", "--", place]
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603


def receive(link: socket.socket) -> tuple[bytes, list[int]]:
    """Return a message of *link*, and the descriptors that came with it."""
    fds = array.array("i")
    message, ancillary, _, _ = link.recvmsg(65536, socket.CMSG_SPACE(4))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % 4])
    return message, list(fds)


def _answer(link: socket.socket, answer: object, fd: int | None) -> None:
    data = json.dumps(answer).encode()
    rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    link.sendmsg([data], rights)


def _serve(views: dict[str, int], order: dict[str, str]) -> tuple[object, int | None]:
    """Carry out *order*, and return what to answer."""
    place = order.get("place", "")
    if order["do"] == "mount":
        known = place in views
        if not known:
            unmount(place)  # what a holder before this one left is dead
            views[place] = mount(place, others=order.get("others") == "yes")
        return {"known": known}, views[place]
    if order["do"] == "unmount" and place in views:
        unmount(place)
        os.close(views.pop(place))
    return {"views": sorted(views)}, None


def leave_container() -> None:
    """Leave the container's control groups and mounts for those of the node.

    The container must share the node's processes, and have its control groups mounted.

    Raises:
        OSError: when the node does not let it.
    """
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, _ = line.split(":", 2)
        if number != "0":
            group = CGROUPS / controllers.removeprefix("name=")
        elif (CGROUPS / "cgroup.controllers").exists():
            group = CGROUPS / GROUP  # groups that have groups below them take no processes
            group.mkdir(exist_ok=True)
        else:
            group = CGROUPS / "unified"
        if group.exists():
            (group / "cgroup.procs").write_text(str(os.getpid()))
    with Path("/proc/1/ns/mnt").open("rb") as node:
        if _libc.setns(node.fileno(), CLONE_NEWNS) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), "/proc/1/ns/mnt")


def _run(listening: socket.socket, alone: float) -> None:
    views: dict[str, int] = {}
    links: list[socket.socket] = []
    since, met = time.monotonic(), False
    try:
        while links or ((views or not met) and time.monotonic() - since < alone):
            for link in select.select([listening, *links], [], [], 1.0)[0]:
                if link is listening:
                    links.append(listening.accept()[0])
                    met = True
                    continue
                message = b""
                with contextlib.suppress(OSError):
                    message = link.recv(65536)
                if not message:
                    links.remove(link)
                    link.close()
                    since = time.monotonic()
                    continue
                try:
                    answer, fd = _serve(views, json.loads(message))
                except OSError as error:
                    answer, fd = {"error": str(error)}, None
                with contextlib.suppress(OSError):
                    _answer(link, answer, fd)
    finally:
        for place in views:
            unmount(place)


def main(path: str, *, apart: bool = False) -> None:
    """Hold views for the caches that connect to the socket *path*; *apart* from their container."""
    if apart:
        leave_container()
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    draft = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        Path(draft).unlink()
    listening.bind(draft)
    Path(draft).chmod(0o600)
    listening.listen(16)
    Path(draft).rename(path)
    _run(listening, ALONE_APART if apart else ALONE)
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()


if __name__ == "__main__":
    main(sys.argv[1], apart=sys.argv[2:] == ["apart"])
