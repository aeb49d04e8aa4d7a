"""Who leads: deciding over a Lease. Pure; the clocks are handed in.

Two clocks are never compared. A candidate takes a lease over when it has not seen it change for
the lease's duration by its own clock; a holder counts from before it sent its last renewal that
worked. As the others can have seen that renewal only later, the holder's time is up first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lockstep.api.core import LeaseSpec


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a lease lasts, until when a holder may still write, how often it is renewed."""

    lease: float = 15.0
    fence: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.fence < self.lease:
            raise ValueError("the times of an election must satisfy 0 < retry < fence < lease")


class Move(Enum):
    """What a candidate does now."""

    CREATE = "create"
    """Make the lease; it does not exist."""
    TAKE = "take"
    """Write oneself into a lease that is free or has run out."""
    RENEW = "renew"
    WAIT = "wait"
    """Another process holds it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A lease as it was read; the version tells whether it has changed."""

    version: str
    spec: LeaseSpec


class Election:
    """One candidate's view of the election."""

    def __init__(self, identity: str, timing: Timing | None = None) -> None:
        self.identity = identity
        self.timing = timing or Timing()
        self._seen: Observation | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    def observe(self, lease: Observation | None, now: float, *, gone: bool = False) -> Move:
        """Take the lease as it was just read (None: there is none) and return the next move.

        *gone* says that the process which holds it is known to have ended.
        """
        if lease is None:
            self._seen = None
            self._renewed_at = None
            return Move.CREATE
        if self._seen is None or self._seen.version != lease.version:
            self._seen, self._seen_at = lease, now
        holder = lease.spec.holder_identity
        if holder == self.identity:
            return Move.RENEW if self._renewed_at is not None else Move.TAKE
        self._renewed_at = None
        duration = float(lease.spec.lease_duration_seconds or self.timing.lease)
        if not holder or gone or now >= self._seen_at + duration:
            return Move.TAKE
        return Move.WAIT

    def renewed(self, lease: Observation, sent_at: float, now: float) -> None:
        """Note that the server took a write that was sent at *sent_at* and left *lease*."""
        self._seen, self._seen_at = lease, now
        self._renewed_at = sent_at

    def lost(self) -> None:
        """Note that another process wrote the lease, or that it was given up."""
        self._renewed_at = None

    @property
    def fence(self) -> float | None:
        """Until when this candidate may write; None where it does not lead at all."""
        return None if self._renewed_at is None else self._renewed_at + self.timing.fence

    def leads(self, now: float) -> bool:
        """Return whether this candidate may write at *now*."""
        return self.fence is not None and now < self.fence

    def spec(self, move: Move, wall: str) -> dict[str, object]:
        """Return what *move* writes into the lease's spec; *wall* is the time to show people."""
        spec: dict[str, object] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self.timing.lease),
            "renewTime": wall,
        }
        if move in (Move.CREATE, Move.TAKE):
            before = 0 if move is Move.CREATE or self._seen is None else self._transitions()
            spec |= {"acquireTime": wall, "leaseTransitions": before}
        return spec

    def _transitions(self) -> int:
        if self._seen is None:
            return 0
        same = self._seen.spec.holder_identity == self.identity
        return self._seen.spec.lease_transitions + (0 if same else 1)
