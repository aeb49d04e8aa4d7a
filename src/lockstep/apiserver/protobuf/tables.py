"""The fields of Kubernetes' protobuf messages, and which kind is which message.

The tables in ``data/protobuf.json.gz`` are reduced from the struct tags of Kubernetes' Go types by
``tools/schemas/protobuf.py``.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

MAGIC: Final = b"k8s\x00"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_DELETE_OPTIONS: Final = "meta.v1.DeleteOptions"


class NotProtobuf(ValueError):
    """A body that cannot be read as one of the kinds that have a protobuf form."""


class Field(NamedTuple):
    """One field of a message."""

    name: str
    """Its name in JSON; empty where its own fields are inlined there."""
    type: str
    """Another message, or one of the codes that the codec knows."""
    shape: str
    """``one``, ``many`` or ``map`` (from strings)."""
    drops_zero: bool
    """Whether JSON leaves out a zero."""


class Tables(NamedTuple):
    """Message names by ``VERSION KIND``, and the fields of each message by number."""

    kinds: dict[str, str]
    messages: dict[str, dict[int, Field]]


@cache
def tables() -> Tables:
    """Return the tables, read at the first call."""
    data = files("lockstep.apiserver") / "data" / "protobuf.json.gz"
    raw = json.loads(gzip.decompress(data.read_bytes()))
    messages = {
        name: {int(number): Field(*field) for number, field in table.items()}
        for name, table in raw["messages"].items()
    }
    return Tables(raw["kinds"], messages)


def message_of(api_version: str, kind: str) -> str:
    """Return the message that a kind is.

    Raises:
        NotProtobuf: when it has no protobuf form, as custom resources have none.
    """
    if kind == "DeleteOptions":
        return _DELETE_OPTIONS
    try:
        return tables().kinds[f"{api_version} {kind}"]
    except KeyError:
        raise NotProtobuf(f"{api_version} {kind} has no protobuf form; send JSON") from None
