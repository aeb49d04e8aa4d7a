"""Objects of any kind as rows, whatever stands in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.console.views import listing
from lockstep.console.views.kinds import ALL, KINDS, Kind
from lockstep.console.views.query import Query

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FIELDS = st.sampled_from(
    ["conditions", "phase", "predictor", "model", "template", "spec", "containers", "findings",
     "mounts", "minReplicas", "members", "queue", "guaranteed", "cacheStates", "readyReplicas",
     "resources", "limits", "nvidia.com/gpu", "type", "status", "message", "fenced", "metrics"]
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda t: st.lists(t, max_size=3) | st.dictionaries(FIELDS, t, max_size=4),
    max_leaves=15,
)


@given(
    st.sampled_from(ALL),
    st.dictionaries(FIELDS, TREES, max_size=5),
    st.dictionaries(FIELDS, TREES, max_size=5),
)
def test_any_tree_makes_a_row_that_sorts(kind: Kind, spec: Any, status: Any) -> None:
    there = listing.rows(kind.columns)
    odd = AnyObject(metadata=ObjectMeta(name="odd"), spec=spec, status=status)
    for obj in (odd, AnyObject(metadata=ObjectMeta(name="plain"))):
        there.put(obj.metadata.name, listing.row(kind, obj))
    for column in kind.columns:
        assert len(list(there.by(column.name, descending=False))) == 2


def notebook(name: str, namespace: str, ready: int) -> AnyObject:
    meta = ObjectMeta(name=name, namespace=namespace)
    return AnyObject(metadata=meta, status={"readyReplicas": ready})


NOTEBOOKS = [notebook("ana", "a", 1), notebook("ben", "a", 0), notebook("eve", "b", 1)]


@pytest.mark.parametrize(
    ("asked", "names", "states"),
    [
        (Query(sort="name", descending=False), ["ana", "ben"], {"Running": 1, "Starting": 1}),
        (Query(sort="name", phases=frozenset({"Running"})), ["ana"], {"Running": 1, "Starting": 1}),
        (Query(sort="state", descending=False), ["ana", "ben"], {"Running": 1, "Starting": 1}),
        (Query(sort="name", search="be"), ["ben"], {"Starting": 1}),
        (Query(sort="name", search="running"), ["ana"], {"Running": 1}),
        (Query(sort="name", namespace="b"), [], {}),
        (Query(sort="name", descending=False, offset=1), ["ben"], {"Running": 1, "Starting": 1}),
    ],
)
def test_a_list_shows_what_matches_and_may_be_seen(
    asked: Query, names: list[str], states: dict[str, int]
) -> None:
    kind = KINDS["notebooks"]
    there = listing.rows(kind.columns)
    for one in NOTEBOOKS:
        key = listing.key_of(one.metadata.namespace, one.metadata.name)
        there.put(key, listing.row(kind, one))
    page = listing.shown(kind, there, asked, {"a"}.__contains__)
    assert [page.rows[key]["name"] for key in page.order] == names
    assert page.facts["states"] == states


@pytest.mark.parametrize("cell", ["=1+1", "+a", "-a", "@a", "\ta"])
def test_no_cell_of_csv_is_a_formula(cell: str) -> None:
    assert listing.harmless(cell) == f"'{cell}"
    assert listing.harmless(-1) == "-1"
