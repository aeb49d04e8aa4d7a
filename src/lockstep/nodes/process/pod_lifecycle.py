"""What to do next with a pod: a function of its spec, of what is known of it, and of the time.

Nothing here starts a process or reads a clock. The caller performs the actions, learns what came
of them, and asks again; it asks at the latest when the decision says.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api.backoff import Backoff
from lockstep.nodes.process.facts import (
    ContainerFacts,
    Hindrance,
    PodFacts,
    Role,
    Verdict,
    containers_of,
)
from lockstep.nodes.process.spec import Container, Pod

RETRIES = Backoff(initial=1.0, cap=60.0)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make the pod's address, directories and volumes."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start a container."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a container: hook, signal, and after *grace* seconds kill."""

    container: str
    grace: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Give the whole pod up."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Release:
    """Nothing runs and nothing will: free the volumes, the address and the cgroups."""


Action = Prepare | Start | Stop | Fail | Release


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and when to ask again at the latest (none: only when something happens)."""

    actions: tuple[Action, ...] = ()
    wake: float | None = None


def decide(pod: Pod, facts: PodFacts, now: float) -> Decision:
    """Return what to do with *pod* at *now*."""
    if facts.deleted or facts.verdict is not None:
        return _wind_down(pod, facts, facts.grace)
    if finished(pod, facts):
        return _wind_down(pod, facts, _grace(pod))
    deadline = _deadline(pod, facts)
    if deadline is not None and now >= deadline:
        return Decision((Fail(DEADLINE_EXCEEDED),))
    if not facts.prepared:
        return _soonest(_prepare(facts, now), deadline)
    return _soonest(_run(pod, facts, now), deadline)


DEADLINE_EXCEEDED = Verdict(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


def finished(pod: Pod, facts: PodFacts) -> bool:
    """Tell whether the pod's containers have all ended for good."""
    policy = pod.spec.restart_policy
    for container, role in containers_of(pod):
        end = facts.of(container.name).exit
        if role is Role.INIT and policy == "Never" and end is not None and end.code != 0:
            return True
    ends = [facts.of(one.name).exit for one in pod.spec.containers]
    if policy == "Always" or not all(ends):
        return False
    return policy == "Never" or all(end is not None and end.code == 0 for end in ends)


def retry(hindrance: Hindrance | None, reason: str, message: str, now: float) -> Hindrance:
    """Return the hindrance after one more failure, with a longer wait than before."""
    failures = hindrance.failures + 1 if hindrance and hindrance.reason == reason else 1
    return Hindrance(reason, message, now + RETRIES.ceiling(failures), failures)


def _grace(pod: Pod) -> float:
    return float(pod.spec.termination_grace_period_seconds)


def _deadline(pod: Pod, facts: PodFacts) -> float | None:
    allowed = pod.spec.active_deadline_seconds
    return None if allowed is None else facts.accepted_at + allowed


def _soonest(decision: Decision, other: float | None) -> Decision:
    times = [time for time in (decision.wake, other) if time is not None]
    return Decision(decision.actions, min(times) if times else None)


def _prepare(facts: PodFacts, now: float) -> Decision:
    if facts.hindrance is not None and now < facts.hindrance.retry_at:
        return Decision(wake=facts.hindrance.retry_at)
    return Decision((Prepare(),))


def _wind_down(pod: Pod, facts: PodFacts, grace: float) -> Decision:
    """Stop what runs: containers first, then sidecars in the reverse order of their start."""
    running = [
        (container, role)
        for container, role in containers_of(pod)
        if facts.of(container.name).running
    ]
    if not running:
        return Decision(() if facts.released else (Release(),))
    others = [container for container, role in running if role is not Role.SIDECAR]
    due = others or [running[-1][0]]
    stops = [
        Stop(one.name, grace, "the pod ends") for one in due if not facts.of(one.name).stopping
    ]
    return Decision(tuple(stops))


def _run(pod: Pod, facts: PodFacts, now: float) -> Decision:
    """Bring the init containers to their end in order, then keep the others running."""
    decisions: list[Decision] = []
    initialized = started_main(pod, facts)
    for container, role in containers_of(pod):
        known = facts.of(container.name)
        if role is Role.INIT:
            if initialized or (known.exit is not None and known.exit.code == 0):
                continue
            decisions.append(_keep(container, known, _wanted_again(pod, role, known), now, pod))
            break
        decisions.append(_keep(container, known, _wanted_again(pod, role, known), now, pod))
        if role is Role.SIDECAR and not initialized and not (known.running and known.started):
            break
    actions = tuple(action for one in decisions for action in one.actions)
    wakes = [one.wake for one in decisions if one.wake is not None]
    return Decision(actions, min(wakes) if wakes else None)


def started_main(pod: Pod, facts: PodFacts) -> bool:
    """Tell whether a main container ever ran, which means that initialization was over."""
    return any(facts.of(one.name).run is not None for one in pod.spec.containers)


def _wanted_again(pod: Pod, role: Role, known: ContainerFacts) -> bool:
    """Tell whether a container that is not running is to be started (again)."""
    end = known.exit
    if end is None:
        return True
    if role is Role.INIT:
        return end.code != 0
    policy = "Always" if role is Role.SIDECAR else pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and end.code != 0)


def _keep(
    container: Container, known: ContainerFacts, wanted: bool, now: float, pod: Pod
) -> Decision:
    """Decide on one container: start it, wait with that, or stop it for its own good."""
    if known.running:
        if known.unhealthy and not known.stopping:
            return Decision((Stop(container.name, _probe_grace(container, pod), known.unhealthy),))
        return Decision()
    if not wanted:
        return Decision()
    due = due_at(known)
    if now < due:
        return Decision(wake=due)
    return Decision((Start(container.name, known.run.attempt + 1 if known.run else 0),))


def _probe_grace(container: Container, pod: Pod) -> float:
    for probe in (container.liveness_probe, container.startup_probe):
        if probe is not None and probe.termination_grace_period_seconds is not None:
            return float(probe.termination_grace_period_seconds)
    return _grace(pod)


def due_at(known: ContainerFacts) -> float:
    """Return when a container that does not run may be started."""
    times = [0.0]
    if known.exit is not None:
        times.append(known.exit.finished + known.backoff)
    if known.hindrance is not None:
        times.append(known.hindrance.retry_at)
    return max(times)
