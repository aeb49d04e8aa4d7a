"""The views of this node: mounted by the holder, answered here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from lockstep.data.core.tree import Tree
from lockstep.data.view import holder
from lockstep.data.view.opens import Opens
from lockstep.data.view.speaker import Content, Speaker

STARTS_WITHIN: Final = 10.0
_HOLDER: Final = (sys.executable, "-I", "-S", str(holder.__file__))
_LONGEST_SOCKET: Final = 100
"""The kernel takes 107 bytes as a socket's path."""


class Views:
    """Mounts and takes away views below *root*.

    In a container, with *apart*, the holder leaves that, and outlives it.
    """

    def __init__(self, root: Path, *, apart: bool = False) -> None:
        self._root, self._socket = root / "views", root / "views.sock"
        self._more = ["apart"] if apart else []
        self._link: socket.socket | None = None
        self._opens: dict[Path, Opens] = {}
        self._lock = asyncio.Lock()

    @property
    def possible(self) -> bool:
        """Whether this node can have views."""
        if len(str(self._socket)) > _LONGEST_SOCKET or not Path("/dev/fuse").exists():
            return False
        return os.geteuid() == 0 or shutil.which("fusermount3") is not None

    async def show(self, uid: str, tree: Tree, content: Content) -> Path:
        """Mount a version and answer for it; one that a cache before mounted goes on.

        Raises:
            OSError: when it cannot be mounted.
        """
        place = self._place(uid, content.version)
        if place in self._opens:
            return place
        opens = place.parent / f".opens-{content.version}"
        async with self._lock:
            fd = await asyncio.to_thread(self._mount, place, opens)
        self._opens[place] = Opens(opens, len(tree.entries))
        Speaker(fd, tree, content, self._opens[place], content.version).start()
        return place

    async def hide(self, uid: str, version: str) -> None:
        """Take the view of a version away, if there is one."""
        place = self._place(uid, version)
        async with self._lock:
            await asyncio.to_thread(self._unmount, place)

    async def close(self) -> None:
        """Take away what nothing has open; the rest waits for the next cache."""
        for place, opens in list(self._opens.items()):
            if opens.total() == 0:
                async with self._lock:
                    await asyncio.to_thread(self._unmount, place)

    def _place(self, uid: str, version: str) -> Path:
        return self._root / uid / version

    def _mount(self, place: Path, opens: Path) -> int:
        # What a dead view left cannot even be looked at.
        with contextlib.suppress(FileExistsError):
            place.mkdir(parents=True, exist_ok=True)
        answer, fds = self._ask({"do": "mount", "place": str(place), "others": "yes"})
        if not fds:
            raise OSError(f"no view can be mounted: {answer.get('error')}")
        if not answer["known"]:
            opens.unlink(missing_ok=True)
        return fds[0]

    def _unmount(self, place: Path) -> None:
        if place in self._opens or place.is_mount():
            self._opens.pop(place, None)
            self._ask({"do": "unmount", "place": str(place)})
            (place.parent / f".opens-{place.name}").unlink(missing_ok=True)

    def _ask(self, order: dict[str, str]) -> tuple[dict[str, Any], list[int]]:
        for last in (False, True):
            if self._link is None:
                self._link = self._connect()
            try:
                self._link.send(json.dumps(order).encode())
                message, fds = holder.receive(self._link)
                if message:
                    return json.loads(message), fds
            except OSError:
                if last:
                    raise
            self._link.close()
            self._link = None
        raise OSError("the holder of views has ended")

    def _connect(self) -> socket.socket:
        until, started = time.monotonic() + STARTS_WITHIN, False
        while True:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                link.connect(str(self._socket))
            except OSError:
                link.close()
                if time.monotonic() > until:
                    raise
            else:
                return link
            if not started:
                # A session of its own: it outlives this process.
                subprocess.Popen(  # noqa: S603  a fixed program, no shell
                    [*_HOLDER, str(self._socket), *self._more],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
                started = True
            time.sleep(0.02)
