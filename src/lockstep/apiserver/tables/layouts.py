"""The table of any kind: its columns and its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.schema.components import descriptions
from lockstep.apiserver.tables import cluster, config, network, pods, storage, workloads
from lockstep.apiserver.tables.format import NAME, Cells, Column, Layout, name_of, seconds, since
from lockstep.apiserver.tables.jsonpath import find

Json = dict[str, Any]

_LAYOUTS: dict[str, Layout] = {
    **pods.LAYOUTS,
    **workloads.LAYOUTS,
    **cluster.LAYOUTS,
    **network.LAYOUTS,
    **storage.LAYOUTS,
    **config.LAYOUTS,
}
_CREATED = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta#creationTimestamp"

_AGE = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": _CREATED,
}


def _created(obj: Json, _now: float) -> Cells:
    return [name_of(obj), (obj.get("metadata") or {}).get("creationTimestamp", "")]


_PLAIN = Layout((NAME, Column("Created At", _CREATED, "date")), _created)


class Table:
    """What ``kubectl get`` prints for the objects of one kind."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def columns(self) -> list[Json]:
        """Return the ``columnDefinitions``."""
        return [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": _description(column.about),
                "priority": column.priority,
            }
            for column in self._layout.columns
        ]

    def cells(self, obj: Json, now: float) -> Cells:
        """Return the cells of the row of *obj* at *now*, in seconds since the epoch."""
        return self._layout.row(obj, now)

    def conditions(self, obj: Json) -> list[Json]:
        """Return the conditions of the row of *obj*: those of a pod that has ended."""
        return pods.row_conditions(obj) if self._layout is _LAYOUTS["pods"] else []


def builtin(kind: Kind) -> Table:
    """Return the table of a built-in kind."""
    name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return Table(_LAYOUTS.get(name, _PLAIN))


def custom(columns: Sequence[Json]) -> Table:
    """Return the table of a custom resource with these ``additionalPrinterColumns``.

    Without any, it shows the age.
    """
    shown = columns or [_AGE]
    paths = [(column["jsonPath"], column["type"]) for column in shown]

    def row(obj: Json, now: float) -> Cells:
        return [name_of(obj), *(_cell(obj, path, type_, now) for path, type_ in paths)]

    return Table(Layout((NAME, *(_custom_column(column) for column in shown)), row))


def _custom_column(column: Json) -> Column:
    about = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return Column(
        column["name"],
        column.get("description") or about,
        column["type"],
        column.get("format", ""),
        column.get("priority", 0),
    )


def _cell(obj: Json, path: str, type_: str, now: float) -> Any:
    value = next(find(path, obj), None)
    if value is None:
        return None
    if type_ == "string":
        return _text(value)
    if type_ == "date" and isinstance(value, str):
        return since(value, now) if seconds(value) is not None else "<invalid>"
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type_ == "integer" else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _description(about: str) -> str:
    component, separator, name = about.partition("#")
    if not separator or " " in component:
        return about
    full = component if component.startswith("io.k8s.") else f"io.k8s.api.{component}"
    return descriptions().get(full, {}).get(name, "")
