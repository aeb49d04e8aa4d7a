"""What was worked out for values seen before: pods of a job are alike in all but names."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

Result = TypeVar("Result")

_ENTRIES = 256
_LONGEST = 16 << 10

_encode = msgspec.msgpack.Encoder().encode


def content(value: Any) -> bytes | None:
    """Return bytes that only values with the same content in the same order have.

    Nothing is returned for what is too long to be kept, or cannot be written down.
    """
    try:
        written = _encode(value)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return written if len(written) <= _LONGEST else None


class Recent(Generic[Result]):
    """Results by the :func:`content` that they follow from; of which a bounded number is kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, bytes], Result] = {}

    def get(self, content: bytes, scope: Any = None) -> Result | None:
        """Return what follows from *content* within *scope*, if that is known."""
        return self._known.get((scope, content))

    def keep(self, content: bytes, result: Result, scope: Any = None) -> None:
        """Keep what follows from *content* within *scope*; what is kept must never be changed."""
        if len(self._known) >= _ENTRIES:
            self._known.clear()
        self._known[scope, content] = result
