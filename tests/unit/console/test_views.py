"""Lists, deltas and the form: rows in, rows out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.meta import ObjectMeta
from lockstep.api.training import Role, TrainingJob, TrainingJobSpec, TrainingJobStatus
from lockstep.console.views import form, jobs, query
from lockstep.console.views.job_list import JobList
from lockstep.console.views.picture import EMPTY, Picture, delta
from lockstep.console.views.query import BadQuery, Query
from lockstep.console.views.sorted_rows import SortedRows

KEYS = st.sampled_from("abcde")
PICTURES = st.builds(
    lambda facts, rows: Picture(facts, list(rows), rows),
    st.dictionaries(st.sampled_from(["total", "job"]), st.integers(0, 3)),
    st.dictionaries(KEYS, st.dictionaries(KEYS, st.integers(0, 2), max_size=2)),
)


def applied(before: Picture, changed: dict[str, Any]) -> Picture:
    """Return *before* with a delta, as the page does it."""
    facts = {**before.facts, **changed.get("facts", {})}
    order = changed.get("order", before.order)
    rows = {**before.rows, **changed.get("rows", {})}
    return Picture(
        {key: value for key, value in facts.items() if value is not None},
        list(order),
        {key: rows[key] for key in order},
    )


@given(st.lists(PICTURES, min_size=1, max_size=6))
def test_deltas_add_up_to_the_last_picture(pictures: list[Picture]) -> None:
    there = shown = EMPTY
    for now in pictures:
        changed = delta(shown, now)
        there, shown = applied(there, changed), now
        assert (there.facts, there.order, there.rows) == (now.facts, now.order, now.rows)
        assert not delta(shown, now)


@given(st.lists(st.tuples(KEYS, st.integers(0, 3) | st.none()), max_size=30))
def test_rows_stay_sorted_while_they_change(changes: list[tuple[str, int | None]]) -> None:
    rows: SortedRows[int] = SortedRows({"value": lambda row: row})
    list(rows.by("value", descending=False))  # from here on it is kept sorted
    fresh: dict[str, int] = {}
    for key, value in changes:
        if value is None:
            rows.remove(key)
            fresh.pop(key, None)
        else:
            rows.put(key, value)
            fresh[key] = value
    expected = [key for _, key in sorted((value, key) for key, value in fresh.items())]
    assert [key for key, _ in rows.by("value", descending=False)] == expected
    assert [key for key, _ in rows.by("value", descending=True)] == expected[::-1]


def job(name: str, namespace: str = "a", phase: Any = "Running", queue: str = "q") -> TrainingJob:
    roles = [Role(name="worker", template={"spec": {"containers": []}})]
    return TrainingJob(
        metadata=ObjectMeta(name=name, namespace=namespace, creation_timestamp=f"t-{name}"),
        spec=TrainingJobSpec(framework="plain", roles=roles, queue=queue),
        status=TrainingJobStatus(phase=phase),
    )


JOBS = [job("one"), job("two", "b"), job("three", phase="Failed"), job("four", queue="other")]


@pytest.mark.parametrize(
    ("asked", "names", "total"),
    [
        (Query(sort="name", descending=False), ["four", "one", "three"], 3),
        (Query(sort="name"), ["three", "one", "four"], 3),
        (Query(search="o", sort="name"), ["one", "four"], 2),
        (Query(phases=frozenset({"Failed"})), ["three"], 1),
        (Query(queue="other"), ["four"], 1),
        (Query(namespace="b"), [], 0),
        (Query(sort="name", descending=False, offset=1, limit=1), ["one"], 3),
    ],
)
def test_a_page_holds_what_matches_and_may_be_seen(
    asked: Query, names: list[str], total: int
) -> None:
    there = JobList()
    for one in JOBS:
        there.put(f"{one.metadata.namespace}/{one.metadata.name}", jobs.row(one, None))
    page = there.page(asked, {"a"}.__contains__)
    assert [page.rows[key]["name"] for key in page.order] == names
    assert page.facts["total"] == total
    if not (asked.search or asked.queue or asked.namespace):
        assert page.facts["phases"] == {"Failed": 1, "Running": 2}


@given(
    st.lists(
        st.tuples(KEYS, st.sampled_from("xy"), st.sampled_from(["Running", "Failed", ""])),
        max_size=30,
    ),
    st.sampled_from(["", "a", "x/"]),
    st.sets(st.sampled_from(["Running", "Failed"])),
)
def test_running_counts_are_those_of_a_walk_over_all(
    changes: list[tuple[str, str, str]], words: str, phases: set[str]
) -> None:
    there, fresh = JobList(), {}
    for name, space, phase in changes:
        key = f"{space}/{name}"
        if phase:
            fresh[key] = jobs.row(job(name, space, phase), None)
            there.put(key, fresh[key])
        else:
            fresh.pop(key, None)
            there.remove(key)
    asked = Query(search=words, phases=frozenset(phases))
    page = there.page(asked, {"x"}.__contains__)
    found = [(k, r) for k, r in fresh.items() if r.namespace == "x" and words in k]
    wanted = {k for k, r in found if not phases or r.phase in phases}
    assert set(page.order) == wanted
    assert page.facts["total"] == len(wanted)
    counts = page.facts["phases"]
    assert counts == {
        p: n for p in ("Failed", "Running") if (n := sum(r.phase == p for _, r in found))
    }


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("sort", "nothing"),
        ("phase", "Dancing"),
        ("offset", "-1"),
        ("limit", "1e3"),
        ("limit", "٣"),
        ("q", "x" * 999),
    ],
)
def test_a_bad_parameter_is_named(parameter: str, value: str) -> None:
    with pytest.raises(BadQuery, match=f"^{parameter}: "):
        query.parse({parameter: value}, tuple(jobs.COLUMNS), jobs.PHASES)


@pytest.mark.parametrize(
    ("fields", "blamed"),
    [
        ({}, "command"),
        ({"command": "'"}, "command"),
        ({"command": "x", "workers": "0"}, "workers"),
        ({"command": "x", "gpus": "half"}, "gpus"),
        ({"command": "x", "memory": "much"}, "memory"),
        ({"command": "x", "maxWait": "soon"}, "maxWait"),
        ({"command": "x", "framework": "cobol"}, "framework"),
        ({"command": "x", "environment": "no equals"}, "environment"),
        ({"command": "x", "name": ["a"]}, "name"),
        ({"command": "x", "surprise": 1}, "surprise"),
    ],
)
def test_a_bad_field_is_named(fields: dict[str, Any], blamed: str) -> None:
    with pytest.raises(form.BadField) as refused:
        form.training_job(fields)
    assert refused.value.field == blamed


def test_the_form_makes_the_job_that_it_says() -> None:
    made = form.training_job(
        {"command": "python train.py", "workers": "2", "gpus": 8, "cpu": "4", "image": "i:1"}
    )
    (role,) = made["spec"]["roles"]
    (container,) = role["template"]["spec"]["containers"]
    assert role["replicas"] == 2
    assert container["command"] == ["python", "train.py"]
    assert container["resources"]["limits"] == {"cpu": "4", "nvidia.com/gpu": 8}
