"""What a service needs next: a revision, replicas, its route, the truth in its status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, ControllerRevision, Pod
from lockstep.api.names import QUEUE_LABEL
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.translate import Component, predictor
from lockstep.serve.core import pods, release, revisions, surroundings
from lockstep.serve.core.release import Release
from lockstep.serve.core.status import Standing, status, troubled
from lockstep.serve.core.traffic import Split, replicas, split
from lockstep.serve.core.world import Action, Create, Decision, Delete, Seen


@dataclass(frozen=True, slots=True)
class _Plan:
    """A service as it is to be."""

    component: Component
    latest: ControllerRevision
    traffic: Split
    wanted: dict[str, int]
    """Replicas by revision."""
    closing: str
    release: Release | None


def decide(seen: Seen, component: Component | Problem, wanted: int, now: float) -> Decision:
    """Return what *seen* needs to serve *component* with *wanted* replicas.

    A spec that cannot be served leaves everything as it is: the revision before goes on.
    """
    if isinstance(component, Problem):
        return Decision(troubled(seen, component, now), [])
    data = revisions.content(component)
    latest = revisions.find(seen.revisions, data)
    if latest is None:
        name, written = seen.service.metadata.name, seen.service.spec.predictor
        made = revisions.make(name, seen.revisions, data, _meta(seen), written)
        return Decision(seen.service.status, [Create(CONTROLLER_REVISIONS, made)])
    plan = _plan(seen, component, latest, wanted, now)
    actions = [
        *surroundings.route(seen, component, plan.traffic, plan.closing),
        *surroundings.name(seen, _meta(seen)),
        *_pods(seen, plan),
        *_old_revisions(seen, plan),
    ]
    told = asdict(plan.release) if plan.release is not None else {}
    standing = Standing(component, latest.metadata.name, plan.traffic, wanted, plan.closing, told)
    return Decision(status(seen, standing, now), actions)


def translate(seen: Seen) -> Component | Problem:
    """Return what the service asks for, or what is wrong with that."""
    try:
        component = predictor(seen.service, seen.runtimes)
        if release.steps(component.annotations) and component.canary_percent is not None:
            field = "spec.predictor.canaryTrafficPercent"
            text = f"the steps in {release.STEPS_ANNOTATION} say how much; leave one of them out"
            raise Problem(field, component.canary_percent, text)
        return component
    except Problem as problem:
        return problem


def _meta(seen: Seen) -> surroundings.Json:
    return surroundings.meta(seen)


def _plan(
    seen: Seen, component: Component, latest: ControllerRevision, wanted: int, now: float
) -> _Plan:
    before = seen.service.status.components.get("predictor")
    name = latest.metadata.name
    rolled_out = _rolled_out(seen, before.latest_rolledout_revision if before else "", name)
    was_ready = before is not None and before.latest_ready_revision == name
    is_ready = any(pods.ready(pod) for pod in _of(seen, name))
    released = _released(seen, component, name, now, ready=was_ready or is_ready)
    if not rolled_out or (rolled_out == name and released and released.phase != "Completed"):
        # The first revision of a service gets all requests at once.
        released = None
    traffic = split(
        name,
        latest_ready=was_ready or is_ready,
        rolled_out=rolled_out,
        percent=released.weight if released is not None else component.canary_percent,
    )
    # A revision that never served starts once, whatever the load: only then is it known good.
    proof = 0 if was_ready or is_ready else max(1, component.scaling.minimum)
    counts = replicas(wanted, traffic.weights)
    if released is not None and released.phase in ("Progressing", "Paused"):
        # What is being released stays up, even while no request is sent to it.
        proof = max(proof, 1)
    counts[name] = max(counts.get(name, 0), proof)
    return _Plan(component, latest, traffic, counts, _closing(seen, counts, now), released)


def _released(
    seen: Seen, component: Component, name: str, now: float, *, ready: bool
) -> Release | None:
    """Return how far the release of revision *name* is; None where it is not released in steps."""
    plan = release.steps(component.annotations)
    if not plan:
        return None
    before = seen.service.status.components.get("predictor")
    state = release.recorded(before.release if before is not None else {}, name)
    counts = release.count(seen.loads.values(), name)
    go_on = component.annotations.get(release.CONTINUE_ANNOTATION, "")
    return release.advance(plan, state, counts, now, ready=ready, go_on=go_on)


def _rolled_out(seen: Seen, recorded: str, latest: str) -> str:
    """Return the revision that serves: the one on record, else the newest other one that is ready.

    The spec may change before the status says that the first revision is ready: it serves on.
    """
    if recorded in {one.metadata.name for one in seen.revisions}:
        return recorded
    ready = {pods.revision(pod) for pod in seen.pods if pods.ready(pod)} - {latest}
    serving = [one for one in seen.revisions if one.metadata.name in ready]
    newest = max(serving, key=lambda one: one.revision, default=None)
    return newest.metadata.name if newest is not None else ""


def _closing(seen: Seen, counts: dict[str, int], now: float) -> str:
    """Return the token under which the route is closed; empty while it is open."""
    if any(counts.values()) or any(load.held for load in seen.loads.values()):
        return ""
    if seen.route is not None and seen.route.spec.closing:
        return seen.route.spec.closing
    return f"zero-{now:.3f}"


def _closed(seen: Seen, token: str) -> bool:
    """Return whether every router has seen that the route is closed, and carries nothing more."""
    return bool(token) and all(
        load.closed == token and load.in_flight == 0 and load.held == 0
        for load in seen.loads.values()
    )


def _of(seen: Seen, revision: str) -> list[Pod]:
    return [pod for pod in seen.pods if pods.revision(pod) == revision]


def _pods(seen: Seen, plan: _Plan) -> Iterator[Action]:
    """Yield the replicas to be made, and those to be ended once others serve in their place."""
    by_name = {one.metadata.name: one for one in seen.revisions}
    serving = set(plan.traffic.weights)
    queue = seen.service.metadata.labels.get(QUEUE_LABEL, pods.DEFAULT_QUEUE)
    for pod in seen.pods:
        if pods.over(pod) and pod.metadata.deletion_timestamp is None:
            yield Delete(PODS, pod.metadata.name, pod.metadata.uid)
    for name, count in plan.wanted.items():
        there = _of(seen, name)
        missing = count - sum(not pods.going(pod) for pod in there)
        for number in pods.free_ordinals(there, max(0, missing)):
            body = pods.make(
                seen.service.metadata.name, by_name[name], number, surroundings.meta(seen), queue
            )
            yield Create(PODS, body)
    zero = not any(plan.wanted.values())
    if zero and not _closed(seen, plan.closing):
        return
    for name in {pods.revision(pod) for pod in seen.pods}:
        alive = sorted(
            (pod for pod in _of(seen, name) if not pods.going(pod)),
            key=lambda pod: (pods.ready(pod), -pods.ordinal(pod)),
        )
        extra = len(alive) - plan.wanted.get(name, 0)
        if name not in serving and name not in plan.wanted and not _taken_over(seen, plan):
            continue
        for pod in alive[: max(0, extra)]:
            yield Delete(PODS, pod.metadata.name, pod.metadata.uid)


def _taken_over(seen: Seen, plan: _Plan) -> bool:
    """Return whether the routers send nothing to other revisions than those of the plan."""
    if seen.route is None:
        return False
    named = {one.revision for one in seen.route.spec.backends}
    return named <= set(plan.traffic.weights)


def _old_revisions(seen: Seen, plan: _Plan) -> Iterator[Action]:
    keep = {*plan.traffic.weights, plan.latest.metadata.name, plan.traffic.rolled_out}
    keep |= {pods.revision(pod) for pod in seen.pods}
    for one in revisions.surplus(seen.revisions, keep):
        yield Delete(CONTROLLER_REVISIONS, one.metadata.name, one.metadata.uid)
