"""What the launcher knows of its ranks by their telemetry: read from their meters, reported.

A rank is suspected to hang once its present step takes three times as long as nearly all of its
last ones did, and at least five seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import socket
import time
from pathlib import Path

from lockstep.health.core.rank_figures import BUSY, busy, created, ends, losses
from lockstep.train.state import Json
from lockstep.train.telemetry import SIZE, Meter, Reading, meter_path, server_path

SUSPECT_AFTER = 5.0
BUSY_EVERY = 10.0
"""Seconds between two looks at when a rank calls its collectives."""
_TIMES = 3.0
_LOSSES = 4
_LEAST_STEPS = 3
_LONGEST_ANSWER = 16 << 20


def delivered() -> list[str]:
    """Return where ranks find ``lockstep.train``, where it was brought and not installed."""
    home = Path(__file__).resolve().parents[2]
    return [str(home)] if (home.parent / "bin" / "lockstep-run").is_file() else []


class Meters:
    """The meters of a pod's ranks, in one generation at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._generation = 0
        self._open: dict[int, Meter] = {}
        self._busy: dict[int, tuple[float, list[float]]] = {}

    def variables(self, env: dict[str, str]) -> Json:
        """Return what ranks are told so that their figures come to be known."""
        site = str(Path(__file__).resolve().parent / "site")
        others = [one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one and one != site]
        return {
            "LOCKSTEP_TELEMETRY": self._directory,
            "PYTHONPATH": os.pathsep.join([site, *others, *delivered()]),
            "TORCH_FR_BUFFER_SIZE": env.get("TORCH_FR_BUFFER_SIZE", "2000"),
        }

    def losses(self, count: int) -> Json:
        """Return the last losses of each local rank, by its number and the step."""
        return {
            str(local): {
                str(one.begun + one.steps - back): loss
                for back, loss in enumerate(list(reversed(one.losses))[:_LOSSES])
                if math.isfinite(loss)
            }
            for local, one in self.read(count).items()
        }

    def begin(self, generation: int) -> None:
        """Follow the ranks of *generation* from now on, and forget those of earlier ones."""
        for path in Path(self._directory).glob("rank-*.*"):
            path.unlink(missing_ok=True)
        self.follow(generation)

    def follow(self, generation: int) -> None:
        """Read and ask the ranks of *generation* from now on."""
        self._generation, self._open, self._busy = generation, {}, {}

    def read(self, count: int) -> dict[int, Reading]:
        """Return what the meters of the *count* local ranks show, as far as there are any."""
        found = {}
        for local in range(count):
            meter = self._open.get(local) or self._find(local)
            if meter is not None:
                self._open[local] = meter
                found[local] = meter.read()
        return found

    def told(self, count: int) -> list[Json]:
        """Return the figures of the local ranks as they are reported."""
        now, clock = time.monotonic(), time.time()
        return [
            {**_words(local, one, now, clock), **self._figures(local, one, now)}
            for local, one in self.read(count).items()
        ]

    def _figures(self, local: int, reading: Reading, now: float) -> Json:
        """Return how long a rank was busy in its last steps, and how its loss goes."""
        said: Json = {}
        if loss := losses(reading.steps - len(reading.losses) + 1, reading.losses):
            said["loss"] = loss
        known = self._busy.get(local)
        enough = reading.served and reading.steps >= BUSY + 2
        if enough and (known is None or now - known[0] >= BUSY_EVERY):
            known = self._busy[local] = (now, self._arrivals(local, reading))
        if known is not None and known[1]:
            said["busy"] = [round(one, 6) for one in known[1]]
        return said

    def _arrivals(self, local: int, reading: Reading) -> list[float]:
        try:
            dump = json.loads(self.ask(local, "fr_trace_json"))
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return []
        lengths = [seconds for seconds, _ in reading.kept[-BUSY:]]
        calls = created(dump, time.time() - time.monotonic())
        return busy(ends(reading.last, lengths), calls)

    def _find(self, local: int) -> Meter | None:
        path = meter_path(self._directory, self._generation, local)
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if os.fstat(fd).st_size >= SIZE:
                    return Meter.open(fd)
            finally:
                os.close(fd)
        return None

    def ask(self, local: int, handler: str, timeout: float = 3.0) -> bytes:
        """Return what the worker server of a rank answers to *handler*, such as ``fr_trace_json``.

        Raises:
            OSError, http.client.HTTPException: when it does not answer in *timeout* seconds.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(server_path(self._directory, self._generation, local))
            asking = http.client.HTTPConnection("localhost")
            asking.sock = connection
            asking.request("POST", f"/handler/{handler}", b"")
            return asking.getresponse().read(_LONGEST_ANSWER)


def suspected(reading: Reading, now: float) -> bool:
    """Say whether a rank seems to hang at *now*, on the monotonic clock."""
    if reading.steps < _LEAST_STEPS:
        return False
    return now - reading.last > max(_TIMES * reading.quantile(0.99), SUSPECT_AFTER)


def _words(local: int, reading: Reading, now: float, clock: float) -> Json:
    said: Json = {"local": local, "pid": reading.pid, "steps": reading.steps}
    if reading.steps:
        said["begun"] = reading.begun
        said["at"] = round(clock - (now - reading.last), 3)
        said["seconds"] = round(reading.quantile(0.5), 6)
        said["p99"] = round(reading.quantile(0.99), 6)
        said["data"] = round(reading.data, 4)
    if reading.memory:
        said["gpuMemory"] = reading.memory
    if reading.served:
        said["served"] = True
    if suspected(reading, now):
        said["suspect"] = True
    return said
