"""What counters and states of a node's devices say is wrong: from two readings to findings.

Counters count from boot, or from the reset of a card: what matters is by how much they grew. One
that fell has begun anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.diagnosis import Act, Class
from lockstep.api.node_health import Finding

HOUR: Final = 3600.0
LASTING: Final = 60.0
"""Seconds for which a state must last that may be there for a moment in good order."""
AGAIN: Final = 600.0
"""Seconds after which a state that lasts is told again."""
_HOLDS_DOWN: Final = {0x08: "hardware", 0x40: "heat", 0x80: "the power supply"}
NO_MANAGER: Final = "the fabric manager does not run"
_FABRIC_WAITS: Final[Mapping[float, str]] = {1: "has not started", 2: "is in progress"}
"""NVML's states of a card that needs a fabric and is not part of it."""
_FABRIC_DONE: Final = 3
FULL: Final = 0.95
WORKS: Final = 20.0
"""Utilization of a GPU, in per cent, from which it works."""

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Rise:
    """A counter, and what it means when it grows by so much within an hour."""

    name: str
    by: float
    class_: Class
    action: Act
    sure: float
    cause: str


RISES: Final = (
    Rise("ecc_volatile_uncorrected", 1, "hardware", "reset_gpu", 0.9, "uncorrectable ECC errors"),
    Rise("remapped_uncorrectable", 1, "hardware", "observe", 0.9, "rows remapped after errors"),
    Rise("ecc_volatile_corrected", 1000, "hardware", "observe", 0.7, "many corrected ECC errors"),
    Rise("pcie_replay", 600, "hardware", "observe", 0.7, "PCIe transfers are repeated"),
    Rise("link_downed", 2, "network", "isolate_node", 0.85, "the link goes down again and again"),
    Rise("link_downed", 1, "network", "observe", 0.7, "the link went down"),
    Rise("symbol_error", 120, "network", "isolate_node", 0.85, "very many symbol errors"),
    Rise("symbol_error", 10, "network", "observe", 0.7, "symbol errors: a bad cable or module"),
    Rise("link_error_recovery", 5, "network", "observe", 0.7, "the link recovers from errors"),
    Rise("port_rcv_errors", 10, "network", "observe", 0.7, "packets arrive broken"),
    Rise("local_ack_timeout_err", 10, "network", "observe", 0.6, "RDMA packets are lost"),
    Rise("rnr_nak_retry_err", 10, "network", "observe", 0.5, "a receiver was not ready"),
    Rise("roce_slow_restart", 100, "network", "observe", 0.6, "RoCE slows down after losses"),
    Rise("port_xmit_discards", 100, "network", "observe", 0.6, "packets are thrown away"),
    Rise("carrier_changes", 3, "network", "observe", 0.7, "the interface flaps"),
)
"""Of two about the same counter the first that holds is taken."""


@dataclass
class Watched:
    """What was seen of one device."""

    device: str
    _last: dict[str, float] = field(default_factory=dict)
    _grown: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    _told: dict[str, tuple[float, float]] = field(default_factory=dict)
    _refuted: frozenset[str] = frozenset()

    def look(self, values: Values, now: float) -> list[Finding]:
        """Return what is new about the device at *now*, in seconds on any clock."""
        found = [*self._rises(values, now), *self._states(values, now)]
        self._last = {**self._last, **values}
        return found

    def over(self, values: Values) -> frozenset[str]:
        """Return the causes that ended with *values*; at the first look, all that they refute."""
        now = refuted(values)
        fresh = now - self._refuted
        self._refuted = now
        return fresh

    def _rises(self, values: Values, now: float) -> Iterator[Finding]:
        done: set[str] = set()
        for name, value in values.items():
            before = self._last.get(name)
            if before is None:
                continue
            by = value - before if value >= before else value
            grown = self._grown.setdefault(name, deque(maxlen=4096))
            if by:
                grown.append((now, by))
            while grown and now - grown[0][0] > HOUR:
                grown.popleft()
        for rise in RISES:
            total = sum(by for _, by in self._grown.get(rise.name, ()))
            if rise.name in done or total < rise.by:
                continue
            done.add(rise.name)
            if self._news(rise.cause, total, now):
                words = f"{rise.name} grew by {total:.0f} within an hour"
                yield self._finding(rise.cause, rise.class_, rise.action, rise.sure, words)

    def _news(self, cause: str, total: float, now: float) -> bool:
        """Say whether a rise is more than was told, or was told long ago."""
        at, before = self._told.get(cause, (-HOUR, 0.0))
        if total <= before and now - at < HOUR:
            return False
        if now - at < AGAIN and total < 2 * before:
            return False
        self._told[cause] = (now, total)
        return True

    def _states(self, values: Values, now: float) -> Iterator[Finding]:
        bad = dict(_bad(values))
        for cause in self._since.keys() - bad.keys():
            del self._since[cause]
            self._told.pop(cause, None)
        for cause, state in bad.items():
            since = self._since.setdefault(cause, now)
            at, _ = self._told.get(cause, (-AGAIN, 0.0))
            if now - since >= state.lasts and now - at >= AGAIN:
                self._told[cause] = (now, 0.0)
                yield self._finding(cause, state.class_, state.action, state.sure, state.words)

    def _finding(self, cause: str, class_: Class, action: Act, sure: float, words: str) -> Finding:
        return Finding(
            cause=cause,
            class_=class_,
            action=action,
            device=self.device,
            confidence=sure,
            evidence=f"{self.device or 'node'}: {words}",
        )


@dataclass(frozen=True, slots=True)
class _State:
    class_: Class
    action: Act
    sure: float
    words: str
    lasts: float = 0.0


def refuted(values: Values) -> frozenset[str]:
    """Return the causes that *values* show to be over, however long ago they were found."""
    return frozenset({NO_MANAGER} if values.get("fabric_state") == _FABRIC_DONE else ())


def _bad(values: Values) -> Iterator[tuple[str, _State]]:
    """Yield the states that are wrong as *values* stand, with what they ask for."""
    if values.get("remap_failure"):
        state = _State("hardware", "isolate_node", 0.95, "row remapping failed")
        yield "the remapping of memory rows failed", state
    if values.get("remap_pending"):
        state = _State("hardware", "observe", 0.9, "a remapping waits for a reset")
        yield "a remapping of memory rows waits for a reset", state
    down = [why for bit, why in _HOLDS_DOWN.items() if int(values.get("throttle", 0)) & bit]
    if down:
        words = f"clocks are held down by {', '.join(down)}"
        yield "the GPU is slowed down", _State("hardware", "observe", 0.7, words, LASTING)
    width, most = values.get("pcie_width"), values.get("pcie_width_max")
    if width and most and width < most:
        words = f"{width:.0f} of {most:.0f} PCIe lanes"
        state = _State("hardware", "isolate_node", 0.85, words, LASTING)
        yield "the PCIe link is narrower than it can be", state
    speed, fastest = values.get("pcie_generation"), values.get("pcie_generation_max")
    # A GPU that has nothing to do slows its link down by itself.
    if speed and fastest and speed < fastest and values.get("utilization", 0) >= WORKS:
        words = f"PCIe generation {speed:.0f} of {fastest:.0f} under load"
        state = _State("hardware", "isolate_node", 0.85, words, LASTING)
        yield "the PCIe link is slower than it can be", state
    up, all_ = values.get("nvlinks_up"), values.get("nvlinks")
    if up and all_ and up < all_:
        words = f"{up:.0f} of {all_:.0f} NVLinks are up"
        yield "NVLinks are down", _State("hardware", "reset_gpu", 0.85, words, LASTING)
    used, limit = values.get("files_used"), values.get("files_max")
    if used and limit and used > FULL * limit:
        words = f"{used:.0f} of {limit:.0f} file descriptors are in use"
        yield (
            "the node runs out of file descriptors",
            _State("platform", "isolate_node", 0.8, words, LASTING),
        )
    if (waits := _FABRIC_WAITS.get(values.get("fabric_state", 0))) is not None:
        words = f"NVML says that its registration with the NVLink fabric {waits}"
        state = _State("software", "isolate_node", 0.85, words, LASTING)
        yield NO_MANAGER, state
