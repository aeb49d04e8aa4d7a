"""Values as text in a field of an object: JSON, compressed, in base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import msgspec


def pack(value: Any) -> str:
    """Return *value* as text."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(value))).decode()


def unpack(text: str, type_: Any) -> Any:
    """Return the *type_* that *text* holds.

    Raises:
        ValueError: when it holds none.
    """
    try:
        return msgspec.json.decode(zlib.decompress(base64.b64decode(text)), type=type_)
    except zlib.error as error:
        raise ValueError(f"not compressed: {error}") from None
