"""The schemas of the built-in kinds, as they ship with the package."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.schema.node import Node, builtin

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_known: dict[str, Node] = {}


@cache
def components() -> dict[str, Json]:
    """Return every component by name, without descriptions."""
    return _load("structure.json.gz")


@cache
def descriptions() -> dict[str, dict[str, str]]:
    """Return the prose of every component: its own under an empty name, then its properties'."""
    return _load("descriptions.json.gz")


def node(name: str) -> Node:
    """Return the parsed component called *name*.

    Raises:
        KeyError: when there is no such component.
    """
    return builtin(name, components(), _known)


def _load(name: str) -> dict[str, Any]:
    packed = resources.files("lockstep.apiserver").joinpath("data", name).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=dict[str, Any])
