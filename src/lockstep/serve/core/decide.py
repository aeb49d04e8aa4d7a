"""What a service needs next: a revision, replicas, its route, the truth in its status."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, ControllerRevision, Pod
from lockstep.api.names import GANG_LABEL, QUEUE_LABEL
from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import ComponentStatus, Status
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.translate import Component, predictor
from lockstep.runtime.actions import Action, Create, Decision, Delete
from lockstep.serve.core import gangs, models, pods, release, revisions, surroundings
from lockstep.serve.core.release import Release
from lockstep.serve.core.rollout import OneByOne, one_by_one
from lockstep.serve.core.service_state import Seen
from lockstep.serve.core.status import Standing, status, troubled, with_transformer
from lockstep.serve.core.traffic import Split, replicas, returns, split

STOP_ANNOTATION: Final = "serving.kserve.io/stop"
"""With ``true``: the service has no replicas until this goes."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A component as it is to be."""

    component: Component
    latest: ControllerRevision
    traffic: Split
    wanted: dict[str, int]
    """Replicas by revision."""
    closing: str
    release: Release | None
    canaries: tuple[tuple[str, int, str, bool], ...] = ()
    """Name, per cent, revision and readiness of each."""
    rollout: Json = field(default_factory=dict)
    """How far replicas are replaced one at a time; empty where they are not."""


def decide(
    seen: Seen,
    component: Component | Problem,
    wanted: int,
    now: float,
    *,
    transformers: int = 0,
    unread: str = "",
    answers: Mapping[str, release.Answer] | None = None,
) -> Decision[Status]:
    """Return what *seen* needs to serve *component* with *wanted* replicas.

    *transformers* is how many replicas its transformer needs, *unread* which metrics could not be
    read. A spec that cannot be served leaves
    everything as it is: the revision before goes on.
    """
    if isinstance(component, Problem):
        return Decision(troubled(seen, component, now), [])
    made = _missing_revision(seen, component)
    if made is not None:
        return Decision(seen.service.status, [made])
    meta = surroundings.meta(seen)
    transformer = component.transformer
    view = seen.predictor(transformed=transformer is not None)
    latest = _latest(view, component)
    plan = _plan(view, component, latest, wanted, now, answers=answers)
    actions = [
        *models.datasets(seen, _kept(seen, component, plan)),
        *surroundings.peers(seen, component),
        *_serve(view, plan, meta),
    ]
    told = asdict(plan.release) if plan.release is not None else {}
    standing = Standing(
        component,
        latest.metadata.name,
        plan.traffic,
        wanted,
        plan.closing,
        told,
        plan.canaries,
        unread,
        models.failure(seen, latest),
        plan.rollout,
    )
    found = status(view, standing, now)
    front = seen.of("transformer")
    if transformer is not None:
        plan = _plan(front, transformer, _latest(front, transformer), transformers, now)
        actions += _serve(front, plan, meta)
        named = plan.latest.metadata.name
        standing = Standing(transformer, named, plan.traffic, transformers, plan.closing, {})
        found = with_transformer(found, front, standing, now)
    elif _leads(seen, plan):
        actions += [Delete(PODS, one.metadata.name, one.metadata.uid) for one in front.pods]
        actions += surroundings.leftover(seen)
    return Decision(found, actions)


def _kept(seen: Seen, component: Component, plan: _Plan) -> list[ControllerRevision]:
    """Return the revisions whose replicas serve or are to: their models stay."""
    names = {*plan.wanted, *plan.traffic.weights, *(pods.revision(pod) for pod in seen.pods)}
    names |= {_latest(seen, one).metadata.name for _, one in component.canaries}
    return [one for one in seen.revisions if one.metadata.name in names]


def _leads(seen: Seen, plan: _Plan) -> bool:
    """Return whether the service's route sends to the predictor itself."""
    backends = seen.route.spec.backends if seen.route is not None else []
    return bool(backends) and {one.revision for one in backends} <= set(plan.traffic.weights)


def _missing_revision(seen: Seen, component: Component) -> Create | None:
    """Return the revision to be made first; none where there is one of each component."""
    several = [component, *(one for _, one in component.canaries)]
    if component.transformer is not None:
        several.append(component.transformer)
    for one in several:
        chain = seen.of(one.name).revisions
        data = revisions.content(one)
        if revisions.find(chain, data) is None:
            name, spec = seen.service.metadata.name, seen.service.spec
            written = spec.predictor if one.name == "predictor" else {}
            meta = surroundings.meta(seen)
            body = revisions.make(name, chain, data, meta, written, component=one.name)
            return Create(CONTROLLER_REVISIONS, body)
    return None


def _latest(seen: Seen, component: Component) -> ControllerRevision:
    chain = seen.of(component.name).revisions
    return max(chain, key=lambda one: one.revision)


def _serve(seen: Seen, plan: _Plan, meta: Json) -> list[Action]:
    """Return what brings one component and its route to what they are to be."""
    return [
        *surroundings.route(seen, plan.component, plan.traffic, plan.closing),
        *surroundings.name(seen, meta),
        *_pods(seen, plan),
        *_old_revisions(seen, plan),
    ]


def translate(seen: Seen) -> Component | Problem:
    """Return what the service asks for, or what is wrong with that."""
    try:
        component = predictor(seen.service, seen.runtimes, cached=seen.cached)
        if (
            release.steps(component.annotations, seen.templates)
            and component.canary_percent is not None
        ):
            field = "spec.predictor.canaryTrafficPercent"
            text = f"the steps in {release.STEPS_ANNOTATION} say how much; leave one of them out"
            raise Problem(field, component.canary_percent, text)
    except Problem as problem:
        return problem
    router = surroundings.first(seen.routers)
    if component.transformer is not None and router is not None and router.spec.port != 80:
        return replace(component, transformer=_at_port(component.transformer, router.spec.port))
    return component


def _at_port(transformer: Component, port: int) -> Component:
    """Return a transformer that asks for its predictor at the router's *port*."""
    template = copy.deepcopy(transformer.template)
    for container in template["spec"]["containers"]:
        args = container.get("args", [])
        if "--predictor_host" in args:
            args[args.index("--predictor_host") + 1] += f":{port}"
    return replace(transformer, template=template)


def _plan(
    seen: Seen,
    component: Component,
    latest: ControllerRevision,
    wanted: int,
    now: float,
    *,
    answers: Mapping[str, release.Answer] | None = None,
) -> _Plan:
    before = seen.service.status.components.get(component.name)
    name = latest.metadata.name
    rolled_out, previous, returning = _history(seen, component, name, wanted)
    was_ready = before is not None and before.latest_ready_revision == name
    is_ready = any(pods.ready(pod) for pod in _of(seen, name))
    good = was_ready or is_ready
    released = _released(seen, component, name, now, ready=good, answers=answers)
    if not rolled_out or (rolled_out == name and released and released.phase != "Completed"):
        # The first revision of a service gets all requests at once.
        released = None
    way = component.way
    traffic = split(
        name,
        latest_ready=was_ready or is_ready,
        rolled_out=rolled_out,
        percent=released.weight if released is not None else component.canary_percent,
        asked_for=bool(way.rules or way.mirror or way.tags),
    )
    traffic = replace(traffic, previous=previous, returning=returning)
    canaries = _canaries(seen, component)
    traffic = traffic.beside({rev: percent for _, percent, rev, good in canaries if good})
    # A revision that never served starts once even without load: only then is it known good.
    proof = 0 if was_ready or is_ready else max(1, component.scaling.minimum)
    if released is not None and released.phase in ("Progressing", "Paused"):
        # What is being released stays up, even while no request is sent to it.
        proof = max(proof, 1)
    counts = _counts(component, traffic, wanted, canaries)
    counts[name] = max(counts.get(name, 0), proof)
    tight = None
    if not (canaries or released) and component.canary_percent in (None, 100):
        tight = _one_by_one(seen, component, name, rolled_out, max(1, wanted))
    if tight is not None:
        traffic, counts = tight.traffic, dict(tight.wanted)
    if STOP_ANNOTATION in component.annotations and _stopped(component):
        counts = dict.fromkeys(counts, 0)
    closing = _closing(seen, counts, now)
    record = tight.record if tight is not None else {}
    return _Plan(component, latest, traffic, counts, closing, released, canaries, record)


def _one_by_one(
    seen: Seen, component: Component, latest: str, old: str, count: int
) -> OneByOne | None:
    """Return the next step of a rollout that finds no room; none where there is room."""
    if not old or old == latest:
        return None
    before = seen.service.status.components.get(component.name)
    told = before.rollout if before is not None else {}
    return one_by_one(latest, old, count, told, new=_of(seen, latest), before=_of(seen, old))


def _stopped(component: Component) -> bool:
    return component.annotations[STOP_ANNOTATION] == "true"


def _canaries(seen: Seen, component: Component) -> tuple[tuple[str, int, str, bool], ...]:
    found = []
    for percent, one in component.canaries:
        revision = _latest(seen, one).metadata.name
        good = any(pods.ready(pod) for pod in _of(seen, revision))
        found.append((one.name.removeprefix("canary-"), percent, revision, good))
    return tuple(found)


def _released(
    seen: Seen,
    component: Component,
    name: str,
    now: float,
    *,
    ready: bool,
    answers: Mapping[str, release.Answer] | None,
) -> Release | None:
    """Return how far the release of revision *name* is; None where it is not released in steps."""
    plan = release.steps(component.annotations, seen.templates)
    if not plan:
        return None
    before = seen.service.status.components.get(component.name)
    state = release.recorded(before.release if before is not None else {}, name)
    counts = release.count(seen.loads.values(), name)
    go_on = component.annotations.get(release.CONTINUE_ANNOTATION, "")
    return release.advance(plan, state, counts, now, ready=ready, go_on=go_on, answers=answers)


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


def _counts(
    component: Component,
    traffic: Split,
    wanted: int,
    canaries: tuple[tuple[str, int, str, bool], ...],
) -> dict[str, int]:
    """Return how many replicas each revision gets when *wanted* are to serve."""
    counts = replicas(wanted, traffic.weights)
    if traffic.returning:
        share = 100 - (component.canary_percent or 0)
        counts.update(replicas(wanted, {traffic.returning: share}))
    for (_, _, revision, good), (_, canary) in zip(canaries, component.canaries, strict=True):
        least = canary.scaling.minimum if good else max(1, canary.scaling.minimum)
        counts[revision] = max(counts.get(revision, 0), least)
    return counts


def _history(seen: Seen, component: Component, latest: str, wanted: int) -> tuple[str, str, str]:
    """Return the revision rolled out, the one before it, and the one to which requests return.

    Requests return to a revision once one of its replicas is ready, or where none is *wanted*.
    """
    before = seen.service.status.components.get(component.name)
    rolled_out = _rolled_out(seen, before.latest_rolledout_revision if before else "", latest)
    previous = _previous(seen, before, latest)
    if not returns(latest, rolled_out, previous, component.canary_percent):
        return rolled_out, previous, ""
    if wanted == 0 or any(pods.ready(pod) for pod in _of(seen, previous)):
        return previous, previous, ""
    return rolled_out, previous, previous


def _previous(seen: Seen, before: ComponentStatus | None, latest: str) -> str:
    """Return the revision that was rolled out before *latest*, where it is kept."""
    if before is None:
        return ""
    rolled_out = before.latest_rolledout_revision
    found = before.previous_rolledout_revision if rolled_out in ("", latest) else rolled_out
    return found if found in {one.metadata.name for one in seen.revisions} else ""


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
    return [pod for pod in seen.pods if pods.revision(pod) == revision and not gangs.is_worker(pod)]


def _pods(seen: Seen, plan: _Plan) -> Iterator[Action]:
    """Yield the replicas to be made, and those to be ended once others serve in their place."""
    by_name = {one.metadata.name: one for one in seen.revisions}
    serving = set(plan.traffic.weights)
    queue = seen.service.metadata.labels.get(QUEUE_LABEL, pods.DEFAULT_QUEUE)
    for pod in seen.pods:
        alone = GANG_LABEL not in pod.metadata.labels
        if alone and pods.over(pod) and pod.metadata.deletion_timestamp is None:
            yield Delete(PODS, pod.metadata.name, pod.metadata.uid)
    yield from gangs.mend(seen, by_name, queue)
    parts = gangs.replicas(seen)
    for name, count in plan.wanted.items():
        there = _of(seen, name)
        missing = count - sum(not pods.going(pod) for pod in there)
        # The pods of one that went are gone before it is made anew.
        taken = {int(one.rpartition("-")[2]) for one in parts if one.rpartition("-")[0] == name}
        for number in pods.free_ordinals(there, max(0, missing), taken):
            yield from gangs.make(seen, by_name[name], number, queue)
    zero = not any(plan.wanted.values())
    if zero and not _closed(seen, plan.closing):
        return
    for name in {pods.revision(pod) for pod in seen.pods if not gangs.is_worker(pod)}:
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
    keep.add(plan.traffic.previous)
    keep |= {pods.revision(pod) for pod in seen.pods} | {one for _, _, one, _ in plan.canaries}
    for one in revisions.surplus(seen.revisions, keep):
        yield Delete(CONTROLLER_REVISIONS, one.metadata.name, one.metadata.uid)
