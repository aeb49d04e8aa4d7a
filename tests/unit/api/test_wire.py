"""A tree that does not fit says where: by field, index and key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockstep.api.core import Node
from lockstep.api.gang import Gang
from lockstep.api.wire import convert

GROUP = {"name": "a", "min": 1}


@pytest.mark.parametrize(
    ("tree", "type_", "where"),
    [
        ({"metadata": 3}, Node, "$.metadata"),
        ({"metadata": {"labels": {"a": "b", "zone": 5}}}, Node, "$.metadata.labels[zone]"),
        (
            {"spec": {"groups": [{"name": "a", "min": 1}, {"name": 1}]}},
            Gang,
            "$.spec.groups[1].name",
        ),
        ({"a": {"b": 1, "c": "no"}}, dict[str, dict[str, int]], "$[a][c]"),
        ({"a": [{}, {"c": "no"}]}, dict[str, list[dict[str, int]]], "$[a][1][c]"),
    ],
)
def test_the_path_names_keys(tree: dict[str, Any], type_: Any, where: str) -> None:
    with pytest.raises(msgspec.ValidationError) as failure:
        convert(tree, type_)
    assert f"`{where}`" in str(failure.value)
