"""Rules of several projects' admission webhooks: names, duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lockstep.compat.translation import Refused

_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LONGEST: Final = 63


def dns_label(name: str, at: str, *, of: str = "") -> None:
    """Refuse the field *at* whose *name* is no DNS label; *of* says what would have that name.

    Raises:
        Refused: when it has other letters than a-z, 0-9 and -, no letter first, or over 63.
    """
    if len(name) > _LONGEST or not _DNS_1035.fullmatch(name):
        what = f"{of} would be called {name}, which " if of else ""
        rule = "must have at most 63 characters of a-z, 0-9 and -, with a letter first"
        raise Refused(at, name, f"{what}{rule}")


def different(rows: Iterable[tuple[str, object]], what: str) -> None:
    """Refuse the second of two equal values among *rows*, each a field and its value.

    Raises:
        Refused: at the first field whose value is there already; *what* names such a value.
    """
    seen: dict[object, str] = {}
    for at, value in rows:
        if value in seen:
            raise Refused(at, value, f"must differ from {seen[value]}: {what} stands once")
        seen[value] = at
