"""A release in steps: how much of the requests the newest revision gets now, and why.

Steps are written in the words of Argo Rollouts in the annotation ``lockstep.dev/release``::

    steps:
      - setWeight: 10
      - pause: {duration: 30s}
      - analysis: {maxErrorRate: 0.01, requests: 100, duration: 30s}
      - analysis: {templates: [{templateName: errors}], args: [{name: most, value: "0.05"}]}
      - setWeight: 50
      - pause: {}

After the last step the newest revision gets all requests. A pause without a duration ends when
``lockstep.dev/release-continue`` names the revision and the step, as ``NAME-predictor-00002/4``; a
step of ``all`` skips the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import yaml

from lockstep.api import duration
from lockstep.api.serving import RouteLoad
from lockstep.api.wire import Json
from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core.analysis import Measured, Query, due, judged, queries, told, verdict

Answer = Sequence[float] | str
"""Values of a query, or why there are none."""

REVISION: Final = "{{args.revision}}"
"""What stands in a query for the revision that is released."""
STEPS_ANNOTATION: Final = "lockstep.dev/release"
CONTINUE_ANNOTATION: Final = "lockstep.dev/release-continue"
_FIELD: Final = f"metadata.annotations[{STEPS_ANNOTATION}]"
_MOST_BYTES: Final = 16 << 10
_MOST_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class Step:
    """One step; exactly one of its kinds is set."""

    weight: int | None = None
    """Per cent of the requests."""
    pause: float | None = None
    """Seconds; infinity waits for a person."""
    error_rate: float | None = None
    """An analysis: the largest share of answers that may fail, from 0 to 1."""
    requests: int = 0
    """Answers of the newest revision that an analysis needs at least."""
    seconds: float = 0.0
    """How long an analysis lasts at least."""
    queries: tuple[Query, ...] = ()
    """An analysis that asks Prometheus."""


@dataclass(frozen=True, slots=True)
class Release:
    """How far the release of a revision is; kept in the service's status."""

    revision: str
    step: int = 0
    since: float = 0.0
    """When the step began, in seconds since 1970."""
    weight: int = 0
    phase: str = "Progressing"
    """Progressing, Paused, Failed or Completed."""
    message: str = ""
    answers: int = 0
    failures: int = 0
    """What the routers had counted when the step began."""
    measured: dict[str, Measured] = field(default_factory=dict)
    """What queries of the step have said, by name."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Answers of one revision and how many of them failed, so far."""

    answers: int = 0
    failures: int = 0


def recorded(status: Json, revision: str) -> Release:
    """Return what a service's *status* says of the release of *revision*; a new one if nothing."""
    if status.get("revision") != revision:
        return Release(revision)
    try:
        return msgspec.convert(status, Release)
    except msgspec.ValidationError:
        return Release(revision)


def count(loads: Iterable[RouteLoad], revision: str) -> Counts:
    """Return what all routers have counted of *revision*."""
    found = list(loads)
    return Counts(
        sum(one.answers.get(revision, 0) for one in found),
        sum(one.failures.get(revision, 0) for one in found),
    )


def steps(
    annotations: Mapping[str, str], templates: Mapping[str, Json] | None = None
) -> list[Step]:
    """Return the steps that *annotations* ask for; none where they ask for no release in steps.

    *templates* are the specs of the AnalysisTemplates that a step may name.

    Raises:
        Problem: when they cannot be read; it names the step and what is wrong with it.
    """
    text = annotations.get(STEPS_ANNOTATION, "")
    if not text.strip():
        return []
    if len(text) > _MOST_BYTES:
        raise Problem(_FIELD, f"{len(text)} bytes", f"at most {_MOST_BYTES} are read")
    try:
        # Anchors could make a small text a large tree.
        tree = yaml.load(text, Loader=_NoAliases)  # noqa: S506  a safe loader
    except yaml.YAMLError as error:
        raise Problem(_FIELD, text[:40], f"is no YAML: {' '.join(str(error).split())}") from None
    listed = tree.get("steps") if isinstance(tree, dict) else None
    if not isinstance(listed, list) or not listed or len(listed) > _MOST_STEPS:
        raise Problem(_FIELD, text[:40], f"steps: a list of 1 to {_MOST_STEPS} steps is needed")
    return [_step(index, one, templates) for index, one in enumerate(listed)]


class _NoAliases(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read here")
        return super().compose_node(parent, index)


def _step(index: int, tree: Any, templates: Mapping[str, Json] | None) -> Step:
    where = f"{_FIELD}.steps[{index}]"
    if not isinstance(tree, dict) or len(tree) != 1:
        raise Problem(where, tree, "one of setWeight, pause and analysis is needed")
    [(kind, value)] = tree.items()
    if kind == "setWeight":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
            raise Problem(f"{where}.setWeight", value, "a whole number from 0 to 100 is needed")
        return Step(weight=value)
    if kind not in ("pause", "analysis"):
        raise Problem(where, kind, "known are setWeight, pause and analysis")
    value = value or {}
    if kind == "analysis" and isinstance(value, dict) and {"templates", "metrics"} & set(value):
        return _asking(f"{where}.analysis", value, templates)
    known = {"duration"} if kind == "pause" else {"duration", "maxErrorRate", "requests"}
    if not isinstance(value, dict) or set(value) - known:
        raise Problem(f"{where}.{kind}", value, f"known are {', '.join(sorted(known))}")
    seconds = _seconds(f"{where}.{kind}.duration", value.get("duration"))
    if kind == "pause":
        return Step(pause=float("inf") if seconds is None else seconds)
    rate, least = value.get("maxErrorRate", 0.01), value.get("requests", 20)
    if not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise Problem(f"{where}.analysis.maxErrorRate", rate, "a share from 0 to 1 is needed")
    if not isinstance(least, int) or least < 1:
        raise Problem(f"{where}.analysis.requests", least, "a whole number from 1 on is needed")
    return Step(
        error_rate=float(rate), requests=least, seconds=30.0 if seconds is None else seconds
    )


def _asking(where: str, given: Json, templates: Mapping[str, Json] | None) -> Step:
    """Return an analysis by queries, written here or in AnalysisTemplates."""
    known = {"templates", "metrics", "args"}
    if set(given) - known:
        raise Problem(where, given, f"with templates or metrics, known are {', '.join(known)}")
    said = {str(one.get("name")): str(one.get("value", "")) for one in given.get("args") or []}
    metrics = list(given.get("metrics") or [])
    for one in given.get("templates") or []:
        name = str(one.get("templateName", "")) if isinstance(one, dict) else ""
        if templates is None:
            # A reader without the templates looks only whether the rest makes sense.
            continue
        if name not in templates:
            there = ", ".join(sorted(templates)) or "none"
            text = f"there is no such AnalysisTemplate here; there are: {there}"
            raise Problem(f"{where}.templates[].templateName", name, text)
        spec = templates[name]
        metrics += spec.get("metrics") or []
        own = {str(a.get("name")): a.get("value") for a in spec.get("args") or []}
        said = {**{k: str(v) for k, v in own.items() if v is not None}, **said}
    if not metrics and templates is None:
        return Step(error_rate=1.0, requests=1)
    arguments = {**said, "revision": REVISION}
    return Step(queries=queries(f"{where}.metrics", metrics, arguments))


def _seconds(where: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return float(value)
    try:
        return duration.parse(str(value))
    except ValueError:
        raise Problem(where, value, "a time such as 30s or 5m is needed") from None


def advance(
    plan: list[Step],
    state: Release,
    counts: Counts,
    now: float,
    *,
    ready: bool,
    go_on: str = "",
    answers: Mapping[str, Answer] | None = None,
) -> Release:
    """Return how far the release is at the time *now*.

    It begins once the revision is *ready*. *go_on* is the annotation by which a person goes on;
    *answers* are those to queries of the present step that were due.
    """
    if state.phase in ("Failed", "Completed") or not ready:
        return state
    if state.since == 0.0:
        state = _begin(state, 0, state.weight, counts, now)
    skip = go_on == f"{state.revision}/all"
    while not skip and state.step < len(plan):
        if plan[state.step].queries:
            state = _heard(plan[state.step], state, answers or {}, now)
            answers = None
        found = _stand(plan[state.step], state, counts, now, go_on)
        if found is not None:
            return found
        weight = plan[state.step].weight
        before = state.weight if weight is None else weight
        state = _begin(state, state.step + 1, before, counts, now)
    return _with(state, len(plan), 100, "Completed", "all steps are done")


def _stand(step: Step, state: Release, counts: Counts, now: float, go_on: str) -> Release | None:
    """Return the state in which *step* holds the release; None when it is over."""
    if step.weight is not None:
        return None
    passed = now - state.since
    if step.pause is not None:
        if passed >= step.pause or go_on == f"{state.revision}/{state.step}":
            return None
        forever = step.pause == float("inf")
        text = "until it is told to go on" if forever else f"for {step.pause:g} s"
        return _with(state, state.step, state.weight, "Paused", f"step {state.step}: paused {text}")
    if step.queries:
        return _judged(step, state)
    allowed = step.error_rate or 0.0
    # A router that began anew counts from zero.
    answers = counts.answers - min(state.answers, counts.answers)
    failures = min(counts.failures - min(state.failures, counts.failures), answers)
    told = f"step {state.step}: {failures} of {answers} answers failed"
    if answers >= step.requests and failures > allowed * answers:
        text = f"{told}, {allowed:.2%} are allowed"
        return _with(state, state.step, 0, "Failed", text)
    if answers >= step.requests and passed >= step.seconds:
        return None
    text = f"{told}; {step.requests} answers and {step.seconds:g} s are needed"
    return _with(state, state.step, state.weight, "Progressing", text)


def _heard(step: Step, state: Release, answers: Mapping[str, Answer], now: float) -> Release:
    """Return the state with the *answers* in it."""
    measured = dict(state.measured)
    for one in step.queries:
        before = measured.get(one.name, Measured())
        if one.name in answers and due(one, before, state.since, now):
            measured[one.name] = judged(one, before, answers[one.name], now)
    return replace(state, measured=measured)


def _judged(step: Step, state: Release) -> Release | None:
    known = [(one, state.measured.get(one.name, Measured())) for one in step.queries]
    verdicts = [verdict(*pair) for pair in known]
    text = f"step {state.step}: " + "; ".join(told(*pair) for pair in known)
    if False in verdicts:
        return _with(state, state.step, 0, "Failed", text)
    if all(verdicts):
        return None
    return _with(state, state.step, state.weight, "Progressing", text)


def asked(plan: list[Step], state: Release, now: float) -> list[Query]:
    """Return the queries of the present step that are due."""
    if state.phase not in ("Progressing", "Paused") or state.step >= len(plan) or not state.since:
        return []
    return [
        one
        for one in plan[state.step].queries
        if due(one, state.measured.get(one.name, Measured()), state.since, now)
    ]


def _begin(state: Release, step: int, weight: int, counts: Counts, now: float) -> Release:
    return Release(
        state.revision,
        step,
        now,
        weight,
        answers=counts.answers,
        failures=counts.failures,
    )


def _with(state: Release, step: int, weight: int, phase: str, message: str) -> Release:
    return replace(state, step=step, weight=weight, phase=phase, message=message)
