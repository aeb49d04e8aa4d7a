"""A launcher's part in the world of ranks, as a function of what it sees: no I/O and no clock.

It follows the generations: whenever a newer one gathers, its ranks end, it says that it is ready,
and starts them again once the world runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from lockstep.train.state import Json

State = Literal["Idle", "Ready", "Running", "Stopping", "Done", "Failed"]


@dataclass(frozen=True)
class Start:
    """Start the ranks of *world*."""

    world: Json


@dataclass(frozen=True)
class Stop:
    """End the ranks."""


@dataclass(frozen=True)
class Tell:
    """Report, now."""


@dataclass(frozen=True)
class Exit:
    """End the launcher."""

    code: int


Action = Union[Start, Stop, Tell, Exit]


class Member:
    """What this launcher is doing."""

    def __init__(self) -> None:
        self.generation = 0
        self.state: State = "Idle"
        self.ended: Json | None = None
        self.ranks = False
        """Whether ranks of ours may still run."""

    def see(self, world: Json, seated: bool = True) -> list[Action]:
        """Return what follows from *world*, in which the pod is *seated* or stands by."""
        generation, phase = int(world["generation"]), world["phase"]
        if generation < self.generation:
            return []
        if generation > self.generation:
            self.generation, self.ended = generation, None
            if phase != "Gather" and seated:
                return self._missed()
            if self.ranks:
                self.state = "Stopping"
                return [Stop()]
            self.state = "Ready"
            return [Tell()]
        if phase == "Run" and self.state == "Ready" and seated:
            self.state, self.ranks = "Running", True
            return [Start(world), Tell()]
        if phase == "Leave" and (self.state == "Done" or not seated):
            return [Exit(0)]
        return []

    def _missed(self) -> list[Action]:
        # A launcher that was started again in its pod: the others run without its ranks.
        self.state = "Failed"
        self.ended = {
            "rank": -1,
            "code": 1,
            # Before all that follows from it: the others fail for want of these ranks.
            "at": 0.0,
            "line": "its launcher was started again",
        }
        return [Tell(), Stop()]

    def failed(self, ended: Json) -> list[Action]:
        """Return what follows from the end of a rank that should not have ended."""
        if self.state != "Running":
            return []
        self.state, self.ended = "Failed", ended
        return [Tell(), Stop()]

    def gone(self) -> list[Action]:
        """Return what follows once all ranks have ended."""
        self.ranks = False
        if self.state == "Running":
            self.state = "Done"
        elif self.state == "Stopping":
            self.state = "Ready"
        else:
            return []
        return [Tell()]
