"""Probes as a function of their results: when a container counts as started, ready, unhealthy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from lockstep.nodes.process.spec import Container, Probe


class Kind(Enum):
    """What a probe is asked for."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


@dataclass(frozen=True, slots=True)
class Tally:
    """The latest results of one probe: how many alike in a row, and what they amount to."""

    passed: bool
    streak: int = 0
    last: bool | None = None

    def count(self, good: bool, probe: Probe) -> Tally:
        """Return the tally after one more result."""
        streak = self.streak + 1 if self.last is good else 1
        needed = probe.success_threshold if good else probe.failure_threshold
        counted = replace(self, streak=streak, last=good)
        return replace(counted, passed=good) if streak >= needed else counted


def first(kind: Kind) -> Tally:
    """Return what is assumed of a container before its probe was ever run."""
    return Tally(passed=kind is Kind.LIVENESS)


def probes(container: Container) -> dict[Kind, Probe]:
    """Return the probes of *container*."""
    found = {
        Kind.STARTUP: container.startup_probe,
        Kind.LIVENESS: container.liveness_probe,
        Kind.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in found.items() if probe is not None}


@dataclass(frozen=True, slots=True)
class Health:
    """What all probes of a run amount to."""

    tallies: dict[Kind, Tally]

    @classmethod
    def begin(cls, container: Container) -> Health:
        """Return the health of a run that just began."""
        return cls({kind: first(kind) for kind in probes(container)})

    def count(self, kind: Kind, good: bool, probe: Probe) -> Health:
        """Return the health after one more result."""
        return Health({**self.tallies, kind: self.tallies[kind].count(good, probe)})

    @property
    def started(self) -> bool:
        """Tell whether the container has started as far as probes can tell."""
        tally = self.tallies.get(Kind.STARTUP)
        return tally is None or tally.passed

    @property
    def ready(self) -> bool:
        """Tell whether the container is ready to serve."""
        tally = self.tallies.get(Kind.READINESS)
        return self.started and (tally is None or tally.passed)

    def unhealthy(self, container: Container) -> str:
        """Return which probe wants the container ended; empty when none does."""
        for kind in (Kind.STARTUP, Kind.LIVENESS):
            tally, probe = self.tallies.get(kind), probes(container).get(kind)
            if tally is None or probe is None or tally.last is not False:
                continue
            if tally.streak >= probe.failure_threshold and not tally.passed:
                return f"failed {kind.value.lower()} probe"
        return ""

    def due(self, kind: Kind) -> bool:
        """Tell whether a probe of *kind* is to be run now: the startup probe alone comes first."""
        return not self.started if kind is Kind.STARTUP else self.started
