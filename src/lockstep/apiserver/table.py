"""Objects as rows of a table, as ``kubectl get`` asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lockstep.api.wire import Json, encode
from lockstep.apiserver import tables
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.representation import ListMeta, Representation, partial_metadata
from lockstep.apiserver.store import Record

_API = "meta.k8s.io/v1"


class TableOf(Representation):
    """A table; each row carries as much of its object as ``includeObject`` asks for."""

    def __init__(
        self, served: Served, include: str, clock: Callable[[], float] = time.time
    ) -> None:
        # Ages are part of the rows, so nothing is shared between tables of different moments.
        super().__init__(served, f"table/{include}")
        self._include = include
        self._clock = clock
        columns = served.version.get("additionalPrinterColumns") or ()
        self._table = tables.custom(columns) if served.custom else tables.builtin(served.kind)

    def line(self, type_: str, record: Record) -> bytes:
        """Return a line of a watch; which columns there are, only the first of them says."""
        table = self._table_of([record], ListMeta(resource_version=str(record.revision)), None)
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), encode(table))

    def opened(self, line: bytes) -> bytes:
        """Return the first line of a watch, which says what columns there are."""
        columns = b'"columnDefinitions":' + encode(self._table.columns())
        return line.replace(b'"columnDefinitions":null', columns, 1)

    def one(self, record: Record) -> bytes:
        """Return a table of one row."""
        return self._make([record], ListMeta(resource_version=str(record.revision)))

    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Return a table of *records*."""
        return self._make(records, meta)

    def _make(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        return encode(self._table_of(records, meta, self._table.columns()))

    def _table_of(self, records: Sequence[Record], meta: ListMeta, columns: Any) -> Json:
        now = self._clock()
        return {
            "kind": "Table",
            "apiVersion": _API,
            "metadata": meta,
            "columnDefinitions": columns,
            "rows": [self._row(record, now) for record in records],
        }

    def _row(self, record: Record, now: float) -> Json:
        obj = self.served.tree(record)
        row: Json = {"cells": self._table.cells(obj, now)}
        if conditions := self._table.conditions(obj):
            row["conditions"] = conditions
        if self._include == "Object":
            row["object"] = msgspec.Raw(self.served.read(record))
        elif self._include == "None":
            row["object"] = None
        else:
            row["object"] = msgspec.Raw(partial_metadata(record))
        return row

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """Return the bookmark as a table without rows but one that carries the version."""
        line: Json = msgspec.json.decode(super().bookmark(revision, initial_end=initial_end))
        cells = self._table.cells({"metadata": {}}, self._clock())
        table = {
            "kind": "Table",
            "apiVersion": _API,
            "metadata": {"resourceVersion": str(revision)},
            "columnDefinitions": None,
            "rows": [{"cells": cells, "object": line["object"]}],
        }
        return encode({"type": "BOOKMARK", "object": table}) + b"\n"

    def _bookmark_type(self) -> tuple[str, str]:
        return "PartialObjectMetadata", _API
