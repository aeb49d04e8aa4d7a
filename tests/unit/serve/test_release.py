"""Steps of a release: what each waits for, and when the release fails."""

from __future__ import annotations

import pytest

from lockstep.api.serving import RouteLoad
from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core import release
from lockstep.serve.core.analysis import holds
from lockstep.serve.core.release import Counts, Release, Step, advance, count, steps

NEW = "asked-predictor-00002"
TEN, HALF = Step(weight=10), Step(weight=50)
WAIT, HOLD = Step(pause=30.0), Step(pause=float("inf"))
CHECK = Step(error_rate=0.1, requests=20, seconds=10.0)


def play(plan: list[Step], *seen: tuple[float, int, int], go_on: str = "") -> Release:
    """Return the state after looks at (time, answers, failures) of a revision that is ready."""
    state = Release(NEW)
    for now, answers, failures in seen:
        state = advance(plan, state, Counts(answers, failures), now, ready=True, go_on=go_on)
    return state


@pytest.mark.parametrize(
    ("plan", "seen", "expected"),
    [
        ([TEN, WAIT], [(100.0, 0, 0)], (1, 10, "Paused")),
        ([TEN, WAIT, HALF, HOLD], [(100.0, 0, 0), (129.0, 0, 0)], (1, 10, "Paused")),
        ([TEN, WAIT, HALF, HOLD], [(100.0, 0, 0), (130.0, 0, 0)], (3, 50, "Paused")),
        ([TEN, WAIT], [(100.0, 0, 0), (130.0, 0, 0)], (2, 100, "Completed")),
        ([TEN, HOLD], [(100.0, 0, 0), (9e9, 0, 0)], (1, 10, "Paused")),
        ([TEN, CHECK], [(100.0, 5, 0), (111.0, 24, 0)], (1, 10, "Progressing")),
        ([TEN, CHECK], [(100.0, 5, 0), (109.0, 25, 0)], (1, 10, "Progressing")),
        ([TEN, CHECK], [(100.0, 5, 0), (110.0, 25, 2)], (2, 100, "Completed")),
        ([TEN, CHECK], [(100.0, 5, 0), (101.0, 25, 3)], (1, 0, "Failed")),
        ([TEN, CHECK], [(100.0, 5, 0), (101.0, 25, 3), (200.0, 90, 3)], (1, 0, "Failed")),
        ([TEN, CHECK], [(100.0, 90, 50), (110.0, 20, 0)], (1, 10, "Progressing")),
        ([HALF], [(100.0, 0, 0)], (1, 100, "Completed")),
    ],
)
def test_each_step_holds_until_it_is_over(
    plan: list[Step], seen: list[tuple[float, int, int]], expected: tuple[int, int, str]
) -> None:
    state = play(plan, *seen)
    assert (state.step, state.weight, state.phase) == expected


@pytest.mark.parametrize(
    ("go_on", "expected"),
    [
        (f"{NEW}/1", "Completed"),
        (f"{NEW}/all", "Completed"),
        (f"{NEW}/0", "Paused"),
        ("x/all", "Paused"),
    ],
)
def test_a_person_ends_a_pause(go_on: str, expected: str) -> None:
    assert play([TEN, HOLD], (100.0, 0, 0), go_on=go_on).phase == expected


def test_nothing_begins_before_the_revision_is_ready() -> None:
    assert advance([TEN], Release(NEW), Counts(), 100.0, ready=False) == Release(NEW)


def test_all_routers_are_counted() -> None:
    loads = [RouteLoad(answers={NEW: 3}, failures={NEW: 1}), RouteLoad(answers={NEW: 4, "old": 9})]
    assert count(loads, NEW) == Counts(7, 1)


def test_steps_are_read_in_the_words_of_argo_rollouts() -> None:
    text = """
    steps:
    - setWeight: 10
    - pause: {duration: 30s}
    - pause: {}
    - analysis: {maxErrorRate: 0.1, requests: 20, duration: 10}
    """
    assert steps({release.STEPS_ANNOTATION: text}) == [TEN, WAIT, HOLD, CHECK]
    assert steps({}) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps: []", "a list of 1 to 50 steps"),
        ("steps: [", "no YAML"),
        ("a: &a [1]\nsteps: [*a]", "aliases"),
        ("steps: [{setWeight: 101}]", "steps[0].setWeight: 101"),
        ("steps: [{setWeight: 1}, {wait: 3}]", "steps[1]"),
        ("steps: [{pause: {duration: soon}}]", "steps[0].pause.duration: 'soon'"),
        ("steps: [{pause: {until: 3}}]", "known are duration"),
        ("steps: [{analysis: {maxErrorRate: 2}}]", "maxErrorRate: 2"),
        ("steps: [{setWeight: 1, pause: {}}]", "one of setWeight, pause and analysis"),
    ],
)
def test_a_step_that_cannot_be_read_is_named(text: str, told: str) -> None:
    with pytest.raises(Problem) as failure:
        steps({release.STEPS_ANNOTATION: text})
    assert told in str(failure.value)


ERRORS = """
steps:
- setWeight: 5
- analysis:
    metrics:
    - name: errors
      interval: 10s
      count: 3
      failureLimit: 1
      successCondition: result[0] < 0.05
      provider:
        prometheus: {address: "http://p:9090", query: 'rate(x{rev="{{args.revision}}"}[1m])'}
"""


def answered(*answers: tuple[float, release.Answer | None]) -> Release:
    """Return the state after looks at (time, answer of the query) with one analysis."""
    plan, state = steps({release.STEPS_ANNOTATION: ERRORS}), Release(NEW)
    for now, answer in answers:
        heard = {} if answer is None else {"errors": answer}
        state = advance(plan, state, Counts(), now, ready=True, answers=heard)
    return state


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(100.0, None)], (5, "Progressing")),
        ([(100.0, [0.01]), (110.0, [0.01])], (5, "Progressing")),
        ([(100.0, [0.01]), (110.0, [0.01]), (120.0, [0.02])], (100, "Completed")),
        ([(100.0, [0.9]), (110.0, [0.01]), (120.0, [0.01])], (100, "Completed")),
        ([(100.0, [0.9]), (110.0, [0.9])], (0, "Failed")),
        # An answer before its time does not count.
        ([(100.0, [0.9]), (101.0, [0.9])], (5, "Progressing")),
        ([(100.0 + 10 * n, "no answer") for n in range(5)], (0, "Failed")),
        (
            [(100.0, "no answer"), (110.0, [0.0]), (120.0, [0.0]), (130.0, [0.0])],
            (100, "Completed"),
        ),
        ([(100.0 + 10 * n, []) for n in range(4)], (5, "Progressing")),
    ],
)
def test_a_query_decides_as_argo_rollouts_has_it(
    answers: list[tuple[float, release.Answer]], expected: tuple[int, str]
) -> None:
    state = answered(*answers)
    assert (state.weight, state.phase) == expected


def test_the_numbers_that_decided_are_told_and_survive_a_restart() -> None:
    from dataclasses import asdict

    state = answered((100.0, [0.9]), (110.0, [0.9]))
    assert "errors: 0 good, 2 bad of 3, last [0.9], needed: result[0] < 0.05" in state.message
    assert release.recorded(asdict(state), NEW) == state


def test_a_query_is_asked_when_it_is_due() -> None:
    plan = steps({release.STEPS_ANNOTATION: ERRORS})
    state = answered((100.0, None))
    [query] = release.asked(plan, state, 100.0)
    assert query.query == f'rate(x{{rev="{release.REVISION}"}}[1m])'
    assert release.asked(plan, answered((100.0, [0.0])), 109.0) == []


def test_templates_are_found_by_name_with_their_arguments() -> None:
    metric = {
        "name": "m",
        "successCondition": "result[0] > 0",
        "provider": {"prometheus": {"address": "http://p:1", "query": "q{{args.least}}"}},
    }
    spec = {"args": [{"name": "least", "value": "1"}], "metrics": [metric]}
    text = "steps: [{analysis: {templates: [{templateName: t}], args: [{name: least, value: 2}]}}]"
    [step] = steps({release.STEPS_ANNOTATION: text}, {"t": spec})
    assert step.queries[0].query == "q2"
    with pytest.raises(Problem, match="there are: other"):
        steps({release.STEPS_ANNOTATION: text}, {"other": spec})


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ({}, "provider"),
        ({"provider": {"datadog": {}}}, "prometheus is asked"),
        ({"provider": {"prometheus": {"address": "p", "query": "q"}}}, "serverAddress"),
        (
            {"provider": {"prometheus": {"address": "http://p", "query": "q"}}},
            "condition is needed",
        ),
        (
            {
                "provider": {"prometheus": {"address": "http://p", "query": "q"}},
                "successCondition": "all(result)",
            },
            "comparisons",
        ),
        (
            {
                "provider": {"prometheus": {"address": "http://p", "query": "{{args.x}}"}},
                "successCondition": "result[0] > 0",
            },
            "no such argument",
        ),
    ],
)
def test_an_analysis_that_cannot_be_is_named(metric: dict[str, object], told: str) -> None:
    import json

    text = json.dumps({"steps": [{"analysis": {"metrics": [metric]}}]})
    with pytest.raises(Problem, match=told.replace(".", r"\.")):
        steps({release.STEPS_ANNOTATION: text})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("result[0] < 1", True),
        ("result < 1", True),
        ("result[1] >= 2 && result[0] == 0.5", True),
        ("result[0] > 1 || len(result) == 2", True),
        ("isNaN(result[0])", False),
        ("!isNaN(result[0])", True),
    ],
)
def test_conditions_are_argos(condition: str, expected: bool) -> None:
    assert holds(condition, [0.5, 2.0]) is expected
