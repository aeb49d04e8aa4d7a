"""What pods read of a dataset: by bind mount, through the view, and in shuffled epochs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from bench.figure import Figure, NotMeasured
from lockstep.data.core.epochs import Expected, Order, permutation
from lockstep.data.core.manifest import Found, Manifest, build
from lockstep.data.core.room import Account, victims
from lockstep.data.core.tree import Tree
from lockstep.data.view import holder
from lockstep.data.view.opens import Opens
from lockstep.data.view.speaker import Speaker

SLOW = True
FILES, LARGE = 2000, 256 << 20
ROUNDS = 5
OF_NATIVE, OF_PEER, WITHIN = 0.8, 2.0, 0.02
MEMORY = Path("/dev/shm")  # noqa: S108  a directory of its own is made in it
# In a process of its own, so that nothing but the reading is measured.
READ = """
import os, sys, time
root, files = sys.argv[1], int(sys.argv[2])
buffer, count = bytearray(1 << 20), 0
start = time.perf_counter()
with open(root + "/large", "rb", buffering=0) as file:
    while size := file.readinto(buffer):
        count += size
large = count / (time.perf_counter() - start) / 1e6
start = time.perf_counter()
for index in range(files):
    fd = os.open(f"{root}/small/{index:05}", os.O_RDONLY)
    os.read(fd, 8192)
    os.close(fd)
print(large, files / (time.perf_counter() - start))
"""
PEER = """
import os, sys, mfusepy
class Files(mfusepy.Operations):
    use_ns = True
    def getattr(self, path, fh=None):
        seen = os.lstat(sys.argv[1] + path)
        names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
        return {name: getattr(seen, name) for name in names}
    def readdir(self, path, fh): return [".", "..", *os.listdir(sys.argv[1] + path)]
    def open(self, path, flags): return os.open(sys.argv[1] + path, os.O_RDONLY)
    def read(self, path, size, offset, fh): return os.pread(fh, size, offset)
    def release(self, path, fh): os.close(fh)
mfusepy.FUSE(Files(), sys.argv[2], foreground=True, ro=True)
"""


class _Whole:
    """Content that is whole on the node."""

    version = "bench"

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._paths = [root / one.path for one in manifest.entries]

    def whole(self, index: int) -> Path | None:
        return self._paths[index]

    def here(self, index: int, start: int, end: int) -> bytes | None:
        with self._paths[index].open("rb") as file:
            return os.pread(file.fileno(), end - start, start)

    def fetch(self, index: int, start: int, end: int) -> Future[bytes]:
        raise OSError("all of it is here")

    def opened(self, index: int) -> None:
        pass

    def about(self) -> bytes:
        return b"{}"


def run() -> list[Figure]:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        raise NotMeasured("needs /dev/fuse and root")
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        return [*_views(Path(directory)), *_hits()]


def _views(place: Path) -> list[Figure]:
    source, view, peer = place / "source", place / "view", place / "peer"
    for one in (source / "small", view, peer):
        one.mkdir(parents=True)
    (source / "large").write_bytes(os.urandom(1 << 20) * (LARGE >> 20))
    for index in range(FILES):
        (source / "small" / f"{index:05}").write_bytes(os.urandom(4096))
    paths = [one for one in source.rglob("*") if one.is_file()]
    listed = [Found(str(one.relative_to(source)), one.stat().st_size, "e", 1.0) for one in paths]
    manifest = build([("", listed)])
    fd = holder.mount(str(view), others=True)
    opens = Opens(place / "opens", len(manifest.entries))
    Speaker(fd, Tree(manifest), _Whole(source, manifest), opens, "bench").start()
    other = subprocess.Popen([sys.executable, "-c", PEER, str(source), str(peer)])
    try:
        while not peer.is_mount():
            if other.poll() is not None:
                raise NotMeasured("mfusepy does not mount here")
        return _compare(source, view, peer)
    finally:
        holder.unmount(str(view))
        holder.unmount(str(peer))
        other.terminate()
        other.wait()


def _compare(source: Path, view: Path, peer: Path) -> list[Figure]:
    found: dict[Path, list[tuple[float, float]]] = {source: [], view: [], peer: []}
    for _ in range(ROUNDS):
        for place, figures in found.items():
            figures.append(_read(place))
    native, ours, theirs = (
        tuple(statistics.median(column) for column in zip(*found[place], strict=True))
        for place in (source, view, peer)
    )
    large = Figure("cached file through the view", ours[0], "MB/s", limit=OF_NATIVE * native[0])
    small = Figure("small files in the view", ours[1], "opens/s", limit=OF_PEER * theirs[1])
    return [large.beside("the file itself", native[0]), small.beside("mfusepy", theirs[1])]


def _read(place: Path) -> tuple[float, float]:
    command = [sys.executable, "-c", READ, str(place), str(FILES)]
    large, small = subprocess.run(command, check=True, capture_output=True).stdout.split()
    return float(large), float(small)


def _hits() -> list[Figure]:
    return [
        Figure(
            f"hits of shuffled epochs, cache of {percent} %",
            100 * _hit_ratio(2000, 2000 * percent // 100, 5),
            "%",
            limit=percent - 100 * WITHIN,
        )
        for percent in (25, 50, 75)
    ]


def _hit_ratio(count: int, room: int, epochs: int) -> float:
    """Play epochs through the cache's own rules with the order known, as a supply does."""
    expected, held, found = Expected(count), np.zeros(count, np.int64), 0
    account = Account(room, room)
    for epoch in range(epochs):
        order = permutation(5, epoch, count)
        expected.publish("reader", Order(order, following=permutation(5, epoch + 1, count)))
        for file in order.tolist():
            found += bool(epoch and held[file])
            expected.read(file)
            if held[file]:
                continue
            if not account.reserve(1):
                needed = expected.needed()
                for gone in victims(needed, held, 1, int(needed[file]), None):
                    held[gone] = 0
                    account.free(1)
                if not account.reserve(1):
                    continue
            account.settle(1, 1)
            held[file] = 1
    return found / (count * (epochs - 1))
