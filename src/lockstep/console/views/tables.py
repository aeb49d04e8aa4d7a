"""Lists of every other kind, in the columns that the API server shows them by."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.core import EVENTS, NODES, PODS, AnyObject
from lockstep.api.gang import GANGS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS

Json = dict[str, Any]

ACCEPT: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
MOST: Final = 500
"""Rows that a page shows at most."""


def _foreign(group: str, version: str, kind: str, plural: str) -> Resource[Any]:
    return Resource(group, version, plural, kind, True, AnyObject)


KINDS: Final[dict[str, Resource[Any]]] = {
    "queues": QUEUES,
    "gangs": GANGS,
    "nodes": NODES,
    "health": NODE_HEALTHS,
    "pools": NODE_POOLS,
    "services": _foreign("serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices"),
    "datasets": _foreign("data.fluid.io", "v1alpha1", "Dataset", "datasets"),
    "pipelines": PIPELINE_RUNS,
    "models": MODEL_VERSIONS,
    "notebooks": _foreign("kubeflow.org", "v1", "Notebook", "notebooks"),
    "teams": TEAMS,
    "pods": PODS,
    "events": EVENTS,
}
"""The pages, by the word in their address, in the order in which they are shown."""


def shown(table: Json, search: str) -> Json:
    """Return a Table of the API server as columns and rows of a page.

    Rows whose namespace and name do not hold *search* are left out; of the rest the first are
    shown, and ``total`` counts them all. Columns of a priority above 0 are left out, and a column
    that is called Name, which every row has.
    """
    defined = table.get("columnDefinitions") or []
    wanted = [
        index
        for index, one in enumerate(defined)
        if not one.get("priority") and one.get("name") != "Name"
    ]
    rows = []
    for row in table.get("rows") or []:
        meta = (row.get("object") or {}).get("metadata") or {}
        name, namespace = str(meta.get("name", "")), str(meta.get("namespace", ""))
        if search and search not in f"{namespace}/{name}".lower():
            continue
        cells = row.get("cells") or []
        rows.append(
            {
                "name": name,
                "namespace": namespace,
                "uid": str(meta.get("uid", "")),
                "cells": [_text(cells[i]) if i < len(cells) else "" for i in wanted],
            }
        )
    rows.sort(key=lambda one: (one["namespace"], one["name"]))
    columns = [str(defined[i].get("name", "")) for i in wanted]
    return {"columns": columns, "items": rows[:MOST], "total": len(rows)}


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
