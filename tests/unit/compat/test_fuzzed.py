"""Manifests with anything in them: refused by a field's name or translated, nothing by halves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.api.core import AnyObject
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.dialects.made import MADE

Json = dict[str, Any]
BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}
LINES = (Path(__file__).parent / "upstream.jsonl").read_text().splitlines()
SAMPLES = [json.loads(line)["object"] for line in LINES]
ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just({"": None}),
)


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where in *tree* there is something."""
    if not isinstance(tree, dict | list):
        return [at]
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [at, *(place for key, one in inner for place in places(one, (*at, key)))]


def changed(tree: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    found = dict(tree) if isinstance(tree, dict) else list(tree)
    found[at[0]] = changed(tree[at[0]], at[1:], value)
    return found


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_it_is_refused_by_name_or_translated_whole(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(SAMPLES))
    spec = body.get("spec") or {}
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(places(spec)))
        value = data.draw(ODD)
        spec = changed(spec, at, value) if at else spec
    meta = {"namespace": "default", "name": "sample", "uid": "u", **body["metadata"]}
    obj = convert({**body, "metadata": meta, "spec": spec}, AnyObject)
    source = BY_KIND[obj.api_version.partition("/")[0], obj.kind]
    found = source.to_native(obj)
    again = source.to_native(obj)
    assert found == again
    for problem in found.refusals:
        assert problem.field.startswith(("spec", "metadata"))
        assert str(problem)
    if found.refusals:
        assert not found.objects
    for made in found.objects:
        assert made["kind"] in MADE
    source.status_of(obj, [], found.refusals)
