"""The agent's part that looks at counters of devices, and says which sources are missing, once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from lockstep.api.node_health import Finding
from lockstep.health.core.findings import Key, added
from lockstep.health.core.signals import Watched
from lockstep.health.writing import add
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Conflict, NotFound

log = logging.getLogger(__name__)

EVERY: Final = 5.0
ROOT: Final = Path("/")
_COUNTERS: Final = ("counters", "hw_counters")
_WANTED: Final = frozenset(
    {
        "link_downed",
        "symbol_error",
        "link_error_recovery",
        "port_rcv_errors",
        "port_xmit_discards",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
        "roce_slow_restart",
    }
)
Readings = Mapping[str, Mapping[str, float]]
"""Values by device; the node itself has an empty name."""


def port_counters(name: str, interfaces: Iterable[str], root: Path = ROOT) -> dict[str, float]:
    """Return the counters of the network card *name*, as far as sysfs has them."""
    found: dict[str, float] = {}
    for folder in _COUNTERS:
        place = root / "sys/class/infiniband" / name / "ports/1" / folder
        for one in _WANTED:
            value = _number(place / one)
            if value is not None:
                found[one] = value
    changes = [_number(root / "sys/class/net" / one / "carrier_changes") for one in interfaces]
    if any(one is not None for one in changes):
        found["carrier_changes"] = sum(one or 0.0 for one in changes)
    return found


def descriptors(root: Path = ROOT) -> dict[str, float]:
    """Return how many file descriptors the node uses, and how many it may."""
    try:
        used, _, most = (root / "proc/sys/fs/file-nr").read_text().split()
        return {"files_used": float(used), "files_max": float(most)}
    except (OSError, ValueError):
        return {}


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


class SignalsPart:
    """Looks at *readings* every few seconds; *expected* names, by device, what should be there."""

    def __init__(
        self,
        client: Client,
        node: str,
        readings: Callable[[], Readings],
        expected: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._client, self._node = client, node
        self._readings, self._expected = readings, expected
        self._watched: dict[str, Watched] = {}
        self._missing: set[str] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            pending: dict[Key, Finding] = {}
            readings = await asyncio.to_thread(self._readings)
            for one in self.look(readings, time.monotonic()):
                log.warning("%s: %s", one.cause, one.evidence)
                added(pending, one)
            over = self.over(readings)
            if pending or over:
                await self._write(list(pending.values()), over)
            await asyncio.sleep(EVERY)

    def look(self, readings: Readings, now: float) -> Iterable[Finding]:
        """Yield what is new; a source that is missing is named once."""
        for device, values in readings.items():
            watched = self._watched.setdefault(device, Watched(device))
            yield from watched.look(values, now)
        for device, source in self._expected().items():
            if device not in readings or not readings[device]:
                name = f"{device}: {source}"
                if name not in self._missing:
                    self._missing.add(name)
                    log.warning("%s cannot be read: its faults are not seen there", name)

    def over(self, readings: Readings) -> frozenset[Key]:
        """Return the findings that the devices now show to be over, by cause and device."""
        found = {
            (cause, device)
            for device, values in readings.items()
            for cause in self._watched.setdefault(device, Watched(device)).over(values)
        }
        return frozenset(found)

    async def _write(self, found: list[Finding], over: frozenset[Key]) -> None:
        while True:
            try:
                await add(self._client, self._node, found, over=over)
            except Conflict:
                continue
            except ApiError as error:
                level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
                log.log(level, "the health of node %s: %s", self._node, error)
                await asyncio.sleep(1.0)
                continue
            return
