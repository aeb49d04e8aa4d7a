"""The table of any kind: its columns and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.schema.components import descriptions
from lockstep.apiserver.tables import cluster, config, network, pods, storage, workloads
from lockstep.apiserver.tables.format import NAME, Cells, Column, seconds, since
from lockstep.apiserver.tables.jsonpath import find, text_of

_COLUMNS: dict[str, tuple[Column, ...]] = {
    **pods.COLUMNS,
    **workloads.COLUMNS,
    **cluster.COLUMNS,
    **network.COLUMNS,
    **storage.COLUMNS,
    **config.COLUMNS,
}
_CREATED = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta#creationTimestamp"

_AGE = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": _CREATED,
}


_PLAIN = (NAME, Column("Created At", _CREATED, "metadata.creationTimestamp", "date", ""))


class Table:
    """What ``kubectl get`` prints for the objects of one kind."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self._readers = [column.reader() for column in columns]
        self._is_of_pods = columns is pods.PODS

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
            for column in self._columns
        ]

    def cells(self, obj: Json, now: float) -> Cells:
        """Return the cells of the row of *obj* at *now*, in seconds since the epoch."""
        if self._is_of_pods:
            return pods.row(obj, now)
        return [read(obj, now) for read in self._readers]

    def conditions(self, obj: Json) -> list[Json]:
        """Return the conditions of the row of *obj*: those of a pod that has ended."""
        return pods.row_conditions(obj) if self._is_of_pods else []


def builtin(kind: Kind) -> Table:
    """Return the table of a built-in kind."""
    name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return Table(_COLUMNS.get(name, _PLAIN))


def custom(columns: Sequence[Json]) -> Table:
    """Return the table of a custom resource with these ``additionalPrinterColumns``.

    Without any, it shows the age.
    """
    return Table((NAME, *(_custom_column(column) for column in columns or [_AGE])))


def _custom_column(column: Json) -> Column:
    path, type_ = column["jsonPath"], column["type"]
    about = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        column["name"],
        column.get("description") or about,
        type=type_,
        format=column.get("format", ""),
        priority=column.get("priority", 0),
        timed=lambda obj, now: _cell(obj, path, type_, now),
    )


def _cell(obj: Json, path: str, type_: str, now: float) -> Any:
    """Return what a column shows of *obj*: nothing, printed as <none>, where it cannot be read."""
    try:
        found = find(path, obj)
    except ValueError:
        return None
    if not found:
        return None
    (value, *_) = found
    if type_ == "string":
        return text_of(value)
    if type_ == "date" and isinstance(value, str):
        return since(value, now) if seconds(value) is not None else "<invalid>"
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type_ == "integer" else value


def _description(about: str) -> str:
    component, separator, name = about.partition("#")
    if not separator or " " in component:
        return about
    full = component if component.startswith("io.k8s.") else f"io.k8s.api.{component}"
    return descriptions().get(full, {}).get(name, "")
