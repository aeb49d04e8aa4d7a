"""Shares of stub GPUs with their programs as processes, in real time or on the virtual clock."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.stub_gpus import BUILT, TENANT, StubGpus, build, h200x8, two
from tests.support.waiting import eventually_sync, stretched

from lockstep.devices.sharing.core.exposition import Use
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.sharing.region import Region
from lockstep.devices.sharing.shelf import Grant, Shelf

FRONT = BUILT / "front"
CUDA = BUILT / "libcuda.so.1"
NVML = BUILT / "libnvidia-ml.so.1"
GRANT = (
    "import sys; from pathlib import Path; from lockstep.devices.sharing.granting import Granter;"
    "Granter(Path(sys.argv[1])).run_until(lambda: False)"
)
"""What the agent of a node does for shares, as a program."""
MIB = 1 << 20
SECOND = 1_000_000_000
PROCESSES, PROCESS, BUSY, LAST = 336, 392, 136, 264
"""Where ``native/cuda/world.h`` has its processes, how long each is, its time and its last work."""
BELL = 0xBE11
"""The name of all bells on the virtual clock."""
BEGIN = SECOND
"""Where the virtual clock begins."""


def uuid(index: int) -> str:
    """Return the identity of a stub GPU."""
    return f"GPU-00000000-0000-0000-0000-{index:012d}"


class SteppedClock:
    """The stub's virtual clock, of which this process is one of the parties."""

    def __init__(self, world: Path) -> None:
        self._stub = ctypes.CDLL(str(CUDA))
        self._stub.lockstepOpen(str(world).encode())
        self._stub.lockstepNow.restype = ctypes.c_uint64

    def now(self) -> int:
        """Return the virtual time."""
        return int(self._stub.lockstepNow())

    def heard(self) -> int:
        """Return what tells a bell that rings from now on."""
        return int(self._stub.lockstepHeard())

    def wait(self, bells: Iterable[int], heard: int, until: int) -> None:
        """Let the others go on until then."""
        u64 = ctypes.c_uint64
        self._stub.lockstepWait(None, ctypes.c_uint32(heard), u64(until), u64(BELL))

    def ring(self) -> None:
        """Ring for this process."""
        self._stub.lockstepWake(None, ctypes.c_uint64(BELL))

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        """Wake those that wait on *word*."""
        self._stub.lockstepWake(ctypes.byref(word), ctypes.c_uint64(number))

    def leave(self) -> None:
        """Let the others go on without this process."""
        self._stub.lockstepLeave()


@dataclass
class SharedCards:
    """A machine of two or eight stub GPUs on which containers have shares."""

    place: Path
    cards: int = 2
    gpus: StubGpus = field(init=False)
    shelf: Shelf = field(init=False)
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    """Sessions of programs that have children."""
    pids: dict[str, int] = field(default_factory=dict)
    world: bytes = b""
    """The driver's file at the end of a play."""

    def __post_init__(self) -> None:
        build()
        self.gpus = StubGpus(self.place / "gpus")
        self.gpus.update(two() if self.cards <= 2 else h200x8())
        self.shelf = Shelf(self.place / "shares")

    def share(
        self, name: str, *, cards: tuple[int, ...] = (0,), memory: int = 0, **more: Any
    ) -> Grant:
        """Make a share of so many MiB."""
        grant = Grant(
            namespace="default",
            pod=name,
            container="main",
            uid=name,
            cards=[uuid(index) for index in cards],
            memory=memory * MIB,
            **more,
        )
        self.shelf.put(grant)
        return grant

    def environment(self, name: str | None = None, **more: str) -> dict[str, str]:
        """Return the variables of a container with the share *name*, or with none."""
        base = {**os.environ, **self.gpus.environment()}
        if name is None:
            return {**base, **more}
        return {
            **base,
            "LD_LIBRARY_PATH": str(FRONT),
            "LOCKSTEP_DRIVER": str(CUDA),
            "LOCKSTEP_NVML": str(NVML),
            "LOCKSTEP_SHARE": str(self.shelf.path(name, "main")),
            **more,
        }

    def start(self, name: str | None, *what: str, **more: str) -> subprocess.Popen[str]:
        """Start a program in the container of a share."""
        process = subprocess.Popen(
            (str(TENANT), *what),
            env=self.environment(name, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def run(self, name: str | None, *what: str, **more: str) -> list[str]:
        """Run a program there to its end; return its lines."""
        said, error = self.start(name, *what, **more).communicate(timeout=stretched(60))
        assert not error, error
        return said.splitlines()

    @contextmanager
    def granted(self, name: str = "one") -> Iterator[None]:
        """Grant leases by a process of its own, from when the share *name* has one."""
        agent = subprocess.Popen((sys.executable, "-c", GRANT, str(self.shelf.root)))
        share = self.shelf.path(name, "main")
        try:
            eventually_sync(lambda: Region(share).record.card[0].sequence, 60, "leases")
            yield
            assert agent.poll() is None
        finally:
            agent.kill()
            agent.wait()

    def close(self) -> None:
        """End what runs."""
        for group in self.groups:
            os.killpg(group, signal.SIGKILL)
        for process in self.running:
            process.kill()
            process.communicate()

    # --- on the virtual clock ---

    def step(self, parties: int) -> None:
        """Let the clock be virtual; it begins to move when so many parties are there."""
        header = struct.pack("<II48sIIIIQ", 0, 0, b"", 1, parties, 0, 0, BEGIN)
        self.gpus.world.write_bytes(header)

    def play(self, seconds: float, programs: dict[str, str]) -> dict[str, list[Use]]:
        """Run the programs of shares for so long of virtual time; return what each share used."""
        self.step(len(programs) + 1)
        for name, what in programs.items():
            self.pids[name] = self.start(name, *what.split()).pid
        return self._grant(seconds)

    def play_gangs(self, seconds: float, gangs: dict[str, str]) -> dict[str, list[int]]:
        """Run a program on each card of each share; return the last number that each says."""
        self.step(len(gangs) * self.cards + 1)
        ranks = {
            name: [
                self.start(name, "device", str(card), *what.split(), LOCKSTEP_CUDA_GROUP=str(group))
                for card in range(self.cards)
            ]
            for group, (name, what) in enumerate(gangs.items())
        }
        self._grant(seconds)
        return {
            name: [int(one.communicate(timeout=stretched(60))[0].split()[-1]) for one in found]
            for name, found in ranks.items()
        }

    def ran(self, name: str, card: int = 0) -> int:
        """Return the nanoseconds of a card that a program was given by the end of the play.

        They are the driver's, and not what the front metered. All of the last piece counts.
        """
        return self._of(name, BUSY + 8 * card)

    def last(self, name: str, card: int = 0) -> int:
        """Return how long the last piece of work of a program on a card is."""
        return self._of(name, LAST + 8 * card)

    def _of(self, name: str, where: int) -> int:
        world = self.world
        (count,) = struct.unpack_from("<I", world, PROCESSES)
        for number in range(count):
            at = PROCESSES + 8 + number * PROCESS
            if struct.unpack_from("<i", world, at)[0] == self.pids[name]:
                found: int = struct.unpack_from("<Q", world, at + where)[0]
                return found
        return 0

    def most_used(self, card: int = 0) -> int:
        """Return the most bytes of a card that were ever in use, as the driver knows it."""
        found: int = struct.unpack_from("<Q", self.gpus.world.read_bytes(), 88 + 16 * card)[0]
        return found

    def _grant(self, seconds: float) -> dict[str, list[Use]]:
        clock = SteppedClock(self.gpus.world)
        granter = Granter(self.shelf.root, clock)
        end = BEGIN + int(seconds * SECOND)
        granter.run_until(lambda: clock.now() >= end)
        found: dict[str, list[Use]] = {}
        for use in granter.uses():
            found.setdefault(use.pod, []).append(use)
        self.world = self.gpus.world.read_bytes()
        clock.leave()
        return found
