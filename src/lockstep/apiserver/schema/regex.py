"""Regular expressions of Go's dialect (RE2) in Python's."""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PIECE = re.compile(r"\\.|\[:\^?\w+:\]|\(\?[ims]+\)|\[|\]|\$|.", re.DOTALL)


def translate(pattern: str) -> str:
    """Return the pattern for Python that matches what *pattern* matches in Go.

    Raises:
        ValueError: where it uses what Python's expressions cannot say.
    """
    parts: list[str] = []
    in_class = False
    # How many groups for flags each open group has to close before itself.
    scoped = [0]
    for piece in _PIECE.findall(pattern):
        if in_class:
            in_class = _in_class(piece, parts)
        elif piece.startswith("\\"):
            parts.append(_escape(piece))
        elif piece == "[":
            in_class = True
            parts.append(piece)
        elif piece.startswith("(?"):
            # Go's flags hold from here to the end of the group; Python's want a group of their own.
            parts.append(f"{piece[:-1]}:")
            scoped[-1] += 1
        elif piece == "(":
            scoped.append(0)
            parts.append(piece)
        elif piece == ")" and len(scoped) > 1:
            parts.append(")" * (scoped.pop() + 1))
        else:
            parts.append("\\Z" if piece == "$" else piece)
    return "".join(parts) + ")" * scoped[0]


def _in_class(piece: str, parts: list[str]) -> bool:
    """Add a *piece* of a class such as ``[a-z]``; return whether the class goes on."""
    if piece == "]" and parts[-1] not in ("[", "[^"):
        parts.append(piece)
        return False
    if piece == "^" and parts[-1] == "[":
        parts[-1] = "[^"
    elif piece.startswith("[:"):
        parts.append(_posix(piece))
    elif piece.startswith("\\"):
        parts.append(_escape(piece))
    else:
        parts.append("\\[" if piece == "[" else piece)
    return True


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* ready to search with.

    Raises:
        ValueError: when it is no regular expression.
    """
    try:
        return re.compile(translate(pattern), re.ASCII)
    except re.error as broken:
        raise ValueError(str(broken)) from broken


def _escape(piece: str) -> str:
    if piece == "\\z":
        return "\\Z"
    if piece in ("\\p", "\\P"):
        raise ValueError("Unicode classes such as \\p{L} are not supported here")
    return piece


def _posix(piece: str) -> str:
    name = piece[2:-2]
    if name.startswith("^") or name not in _POSIX:
        raise ValueError(f"character class {piece} is not supported here")
    return _POSIX[name]


_GO_ERRORS = (
    ("missing ), unterminated subpattern", "missing closing )"),
    ("unterminated character set", "missing closing ]"),
    ("unbalanced parenthesis", "unexpected )"),
    ("nothing to repeat", "missing argument to repetition operator"),
)


def go_regex_error(error: Exception, pattern: str) -> str:
    """Return what Go says of a *pattern* for which Python has raised *error*."""
    for ours, theirs in _GO_ERRORS:
        if ours in str(error):
            return f"error parsing regexp: {theirs}: `{pattern}`"
    return str(error)
