"""What a launcher keeps for its ranks: their segments, handed over a Unix socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from lockstep.train.segment import ALL_OWN, Segment, Split, Whole, rounded, total
from lockstep.train.state import Json

KEPT = 2
"""Segments of a rank: the one that it writes, and the one before until that holds a whole copy."""
_TIMEOUT = 30.0
_LONGEST_REQUEST = 4096
_SPARE = 64 << 20
"""Bytes of memory that are left to others."""


class TooLittleMemory(Exception):
    """The segment that a rank asks for does not fit; the message says how much is short."""


class Memory:
    """The segments of the local ranks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, list[tuple[int, Segment]]] = {}
        self._save_every = self._keep_every = 0
        self._peers: dict[int, tuple[int, Segment]] = {}
        """Copies that are kept for ranks of another pod, by rank, with the number of all ranks."""
        self.first: dict[int, Json] = {}
        """By local rank: a checksum of its state after the first step of the generation."""
        self.python = ""
        """What runs the ranks, with torch."""
        self.forgotten = False
        """Whether a rank's program turned out to have more than what is kept of it."""
        self._whose: dict[int, Json] = {}
        """By local rank: which rank of how many it is, and whether it holds parts of tensors."""

    def belongs(self, local: int, rank: int, size: int, sharded: bool) -> None:
        """Note whose the copies of a local rank are from now on."""
        self._whose[local] = {"rank": rank, "size": size, "sharded": sharded}

    def whose(self, local: int) -> Json:
        """Return which rank's copies those of a local rank are, as far as it has told."""
        return self._whose.get(local, {})

    def make(self, local: int, slot_bytes: int, layout: int, split: Split = ALL_OWN) -> int:
        """Return the file of a new segment for a rank.

        Raises:
            TooLittleMemory: when the machine or the container lacks the memory.
        """
        size = total(slot_bytes)
        _spared(size, f"two copies of rank {local}'s state")
        with self._lock:
            fd = os.memfd_create(f"lockstep-rank-{local}", os.MFD_CLOEXEC)
            os.ftruncate(fd, size)
            made = Segment.fresh(fd, slot_bytes, layout, split)
            made.save_every, made.keep_every = self._save_every, self._keep_every
            held = [(fd, made), *self._held.get(local, [])]
            self._held[local] = held[:KEPT]
            for old, _ in held[KEPT:]:
                os.close(old)
            return fd

    def segment(self, local: int, slot_bytes: int, layout: int, split: Split = ALL_OWN) -> Segment:
        """Return a new segment for a rank, to be filled here.

        Raises:
            TooLittleMemory: when the machine or the container lacks the memory.
        """
        self.make(local, slot_bytes, layout, split)
        return self._held[local][0][1]

    def peer(self, rank: int, size: int, slot_bytes: int, layout: int, split: Split) -> Segment:
        """Return the segment for a rank of another pod, to be filled here.

        Its other copy stays, unless that is of another number of ranks or laid out otherwise.

        Raises:
            TooLittleMemory: when the machine or the container lacks the memory.
        """
        with self._lock:
            # Copies of another number of ranks must not pass for those of this.
            count, known = self._peers.get(rank, (0, None))
            wanted = (size, rounded(slot_bytes), layout, split)
            if known and (count, known.slot_bytes, known.layout, known.split) == wanted:
                return known
        _spared(total(slot_bytes), f"two copies of rank {rank}, kept for another pod,")
        fd = os.memfd_create(f"lockstep-peer-{rank}", os.MFD_CLOEXEC)
        os.ftruncate(fd, total(slot_bytes))
        made = Segment.fresh(fd, slot_bytes, layout, split)
        os.close(fd)
        with self._lock:
            self._peers[rank] = (size, made)
        return made

    def peer_step(self, rank: int) -> int:
        """Return the newest step that is kept for a rank of another pod; -1 for none."""
        with self._lock:
            known = self._peers.get(rank)
            return max((one.step for one in known[1].whole()), default=-1) if known else -1

    def keep_only(self, ranks: Sequence[int]) -> None:
        """Drop what is kept for other ranks than these of another pod."""
        with self._lock:
            self._peers = {r: one for r, one in self._peers.items() if r in ranks}

    def keep_every(self, steps: int) -> None:
        """Have the ranks keep their state at each multiple of *steps* alone."""
        with self._lock:
            self._keep_every = steps
            for held in self._held.values():
                held[0][1].keep_every = steps

    def told(self) -> Json:
        """Return what is reported of the copies: bytes of one, and how many steps lie between."""
        with self._lock:
            slots = [held[0][1].slot_bytes for held in self._held.values() if held]
            every = max(1, self._keep_every)
        return {"copies": {"bytes": max(slots), "every": every}} if slots else {}

    @property
    def sharded(self) -> bool:
        """Whether ranks of the pod hold parts of tensors."""
        return any(one["sharded"] for one in self._whose.values())

    def save_every(self, steps: int) -> None:
        """Have the ranks ask for a save at each multiple of *steps*; 0 for none."""
        with self._lock:
            self._save_every = steps
            for held in self._held.values():
                held[0][1].save_every = steps

    def newest(self, local: int) -> list[tuple[Segment, Whole]]:
        """Return the whole copies of a rank, the newest first."""
        with self._lock:
            return [(s, whole) for _, s in self._held.get(local, []) for whole in s.whole()]

    def find(
        self, step: int, rank: int | None = None, after: int = -1
    ) -> tuple[Segment, Whole] | None:
        """Return a whole copy of *step*, of *rank* or, without one, of any rank of this pod.

        A negative *step* stands for the newest that is newer than *after*.
        """
        with self._lock:
            found = [
                (segment, whole)
                for segment in self._of(rank)
                for whole in segment.whole()
                if (whole.step == step if step >= 0 else whole.step > after)
            ]
        return max(found, key=lambda one: one[1].step, default=None)

    def _of(self, rank: int | None) -> list[Segment]:
        """Return the segments with the state of *rank*."""
        found = [
            segment
            for local, held in self._held.items()
            for _, segment in held
            if rank is None or self._whose.get(local, {}).get("rank") == rank
        ]
        kept = None if rank is None else self._peers.get(rank)
        return [*found, kept[1]] if kept is not None else found

    def lacks(self, step: int, processes: int, first: int | None = None) -> list[int]:
        """Return the local ranks without a copy of *step*; of their own, if *first* is a rank."""
        return [
            local
            for local in range(processes)
            if all(whole.step != step for _, whole in self.newest(local))
            or (first is not None and self.whose(local).get("rank", first + local) != first + local)
        ]

    def files(self, local: int) -> list[int]:
        """Return the files of a rank's segments, the newest first."""
        with self._lock:
            return [fd for fd, _ in self._held.get(local, [])]

    def snapshots(self, generation: int) -> list[Json]:
        """Return what whole copies there are, as they are reported."""
        with self._lock:
            kept = [
                {"local": -1, "step": whole.step, "bytes": whole.size, "rank": rank, "size": size}
                | ({"own": True} if segment.split.absent else {})
                for rank, (size, segment) in sorted(self._peers.items())
                for whole in segment.whole()
            ]
            return kept + [
                {
                    "local": local,
                    "step": whole.step,
                    "generation": generation,
                    "bytes": whole.size,
                    **self._whose.get(local, {}),
                }
                for local, held in sorted(self._held.items())
                for _, segment in held
                for whole in segment.whole()
            ]

    def progress(self) -> int | None:
        """Return the last step that a local rank has finished."""
        with self._lock:
            newest = [held[0][1].progress for held in self._held.values() if held]
        return max((step for step in newest if step is not None), default=None)

    def forget(self, local: int) -> None:
        """Let no copy of a rank's state count: another start of its program cannot take it on."""
        self.forgotten = True
        with self._lock:
            for _, segment in self._held.get(local, []):
                segment.forget_after(-1)

    def forget_after(self, step: int | None) -> None:
        """Drop the copies that are newer than *step*, or all."""
        with self._lock:
            segments = [segment for held in self._held.values() for _, segment in held]
            for segment in [*segments, *(one for _, one in self._peers.values())]:
                segment.forget_after(-1 if step is None else step)


def _spared(size: int, what: str) -> None:
    free = free_memory()
    if free is not None and size > free - _SPARE:
        raise TooLittleMemory(
            f"{what} take {size >> 20} MiB, and {free >> 20} MiB are free: give the pod more memory"
        )


def free_memory() -> int | None:
    """Return the bytes that the container may still take, where the system says so."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) << 10)
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return min(found, default=None)


class Counter:
    """Answers the ranks: a request and an answer a connection, each one line of JSON."""

    def __init__(
        self,
        directory: Path,
        memory: Memory,
        save: Callable[[int, int], None] = lambda local, step: None,
    ) -> None:
        self._save = save
        self.path = str(directory / "launcher.sock")
        self._memory = memory
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(64)

    def serve(self) -> None:
        """Answer for as long as the launcher lives; for a thread of its own."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(_TIMEOUT)
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self._answer(connection)

    def close(self) -> None:
        """Answer no more."""
        self._socket.close()

    def _answer(self, connection: socket.socket) -> None:
        request = json.loads(connection.makefile("rb").readline(_LONGEST_REQUEST))
        local, files = int(request["local"]), []
        answer: Json = {}
        if request["do"] == "attach":
            files = self._memory.files(local)
        elif request["do"] == "make":
            try:
                split = Split(*request.get("split", ()))
                size, layout = int(request["bytes"]), int(request["layout"])
                files = [self._memory.make(local, size, layout, split)]
                self._memory.python = str(request.get("python", ""))
                if "rank" in request:
                    rank, size = int(request["rank"]), int(request["size"])
                    self._memory.belongs(local, rank, size, bool(request["sharded"]))
            except TooLittleMemory as error:
                answer["error"] = str(error)
        elif request["do"] == "first":
            names = ("step", "sum", "own")
            self._memory.first[local] = {"local": local, **{n: int(request[n]) for n in names}}
        elif request["do"] == "forget":
            self._memory.forget(local)
        elif request["do"] == "save":
            self._save(local, int(request["step"]))
        answer["files"] = len(files)
        socket.send_fds(connection, [json.dumps(answer).encode() + b"\n"], files)


def ask(path: str, request: Json) -> tuple[Json, list[int]]:
    """Return the launcher's answer to a rank's *request*, and the files that come with it.

    Raises:
        OSError: when the launcher does not answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT)
        connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
        data, files, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, KEPT)
        if not data:
            raise ConnectionError("the launcher closed the connection")
        answer: Json = json.loads(data)
        return answer, list(files)
