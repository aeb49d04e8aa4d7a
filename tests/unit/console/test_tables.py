"""The API server's tables as a page shows them."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.console.views import tables

DEFINED = [
    {"name": "Name", "type": "string", "priority": 0},
    {"name": "Phase", "type": "string", "priority": 0},
    {"name": "Uid", "type": "string", "priority": 1},
    {"name": "Ready", "type": "boolean", "priority": 0},
]


def row(name: str, *cells: Any, namespace: str = "default") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    return {"cells": [name, *cells], "object": {"metadata": meta}}


def test_columns_of_the_first_priority_are_shown_beside_the_name() -> None:
    table = {"columnDefinitions": DEFINED, "rows": [row("b", "Bound", "x", True), row("a", None)]}
    found = tables.shown(table, "")
    assert found["columns"] == ["Phase", "Ready"]
    assert [(one["name"], one["cells"]) for one in found["items"]] == [
        ("a", ["", ""]),
        ("b", ["Bound", "true"]),
    ]


@pytest.mark.parametrize(("search", "names"), [("x/", ["b"]), ("a", ["a"]), ("zz", [])])
def test_a_search_looks_at_namespace_and_name(search: str, names: list[str]) -> None:
    rows = [row("a"), row("b", namespace="x")]
    rows[0]["object"]["metadata"]["namespace"] = "y"
    found = tables.shown({"columnDefinitions": DEFINED, "rows": rows}, search)
    assert [one["name"] for one in found["items"]] == names


def test_the_first_rows_are_shown_and_all_are_counted() -> None:
    rows = [row(f"n{number}") for number in range(tables.MOST + 5)]
    found = tables.shown({"columnDefinitions": DEFINED, "rows": rows}, "")
    assert (len(found["items"]), found["total"]) == (tables.MOST, tables.MOST + 5)


@pytest.mark.parametrize("table", [{}, {"rows": None}, {"rows": [{}], "columnDefinitions": []}])
def test_a_table_with_little_in_it_is_shown(table: dict[str, Any]) -> None:
    assert tables.shown(table, "")["columns"] == []
