"""Regular expressions of schemas: RE2, as in Go, whose matching takes linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from lockstep.apiserver.budget import require_small

_LITTLE = 1_000_000
"""Instructions of a pattern times bytes of a text that are matched on the event loop."""
_MAX_MEMORY = 1 << 20
"""Bytes that a compiled pattern and its automaton may take."""
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = _MAX_MEMORY

# What RE2 says where Go's package says it in other words.
_GO_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return *pattern* ready to search with.

    Raises:
        ValueError: when it is no regular expression, in the words of Go.
    """
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise ValueError(_words(error)) from None


def found(pattern: str, text: str) -> Any:
    """Return where *pattern* matches in *text* first, or ``None``.

    Raises:
        ValueError: when the pattern is no regular expression.
        Costly: when to look for it may take long, and this is not a fork.
    """
    expression = compiled(pattern)
    # Without memory for its automaton RE2 tries every instruction at every byte.
    require_small(expression.programsize * len(text), _LITTLE)
    return expression.search(text)


def _words(error: Exception) -> str:
    told = error.args[0]
    text = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    what, _, where = text.partition(": ")
    what = _GO_WORDS.get(what, what)
    return f"error parsing regexp: {what}: `{where}`" if where else f"error parsing regexp: {what}"
