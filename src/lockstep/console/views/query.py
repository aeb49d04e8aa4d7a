"""Which rows of a list are wanted, in which order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

MOST = 200
"""Rows of one page at most; about 60 KB."""
FARTHEST = 10_000_000
WORDS = 200
"""Characters of a search at most."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class BadQuery(ValueError):
    """A query that cannot be answered; the message names the parameter and the remedy."""


@dataclass(frozen=True, slots=True)
class Query:
    """A list as a URL asks for it."""

    search: str = ""
    namespace: str = ""
    phases: frozenset[str] = frozenset()
    queue: str = ""
    user: str = ""
    sort: str = "created"
    descending: bool = True
    offset: int = 0
    limit: int = 50

    def whole(self) -> Query:
        """Return the query for every page of its list."""
        return replace(self, offset=0, limit=MOST)


def parse(
    given: Mapping[str, str],
    sortable: Collection[str],
    phases: Collection[str] | None,
    order: str = "-created",
) -> Query:
    """Return the query of URL parameters; ``sort`` is a column, with ``-`` for descending.

    Without *phases* any word may be a state.

    Raises:
        BadQuery: for a parameter that makes no sense.
    """
    sort = given.get("sort", "") or order
    column = sort.removeprefix("-")
    if column not in sortable:
        raise BadQuery(f"sort: {column[:40]!r} is no column; use one of {', '.join(sortable)}")
    wanted = frozenset(filter(None, given.get("phase", "").split(",")))
    if phases is not None and (unknown := sorted(wanted - frozenset(phases))):
        raise BadQuery(f"phase: {unknown[0][:40]!r} is none; use some of {', '.join(phases)}")
    search = given.get("q", "")
    if len(search) > WORDS:
        raise BadQuery(f"q: {len(search)} characters; use at most {WORDS}")
    return Query(
        search=search.strip().lower(),
        namespace=given.get("namespace", ""),
        phases=wanted,
        queue=given.get("queue", ""),
        user=given.get("user", ""),
        sort=column,
        descending=sort.startswith("-"),
        offset=_number(given, "offset", 0, 0, FARTHEST),
        limit=_number(given, "limit", 50, 1, MOST),
    )


def require_names(**given: str) -> None:
    """Hold names of objects, which become parts of paths, to the rules for them.

    Raises:
        BadQuery: for the first that is no name.
    """
    for field, value in given.items():
        if not _NAME.fullmatch(value):
            raise BadQuery(f"{field}: {value[:80]!r} is no name of an object")


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise BadQuery(f"{name}: {text[:40]!r} is no number from {least} to {most}")
    return int(text)
