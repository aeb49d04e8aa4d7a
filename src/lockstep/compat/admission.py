"""Rules of several projects' admission webhooks: names, duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstep.api.label_syntax import key_problems, value_problems
from lockstep.api.quantity import parse
from lockstep.api.wire import Json
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


def qualified(name: str, at: str) -> None:
    """Refuse the field *at* whose *name* is none of a label or a resource.

    Raises:
        Refused: when its parts have other letters than a label's key.
    """
    for problem in key_problems(name):
        raise Refused(at, name, problem)


def labelled(labels: Mapping[str, str], at: str) -> None:
    """Refuse *labels*, at the field *at*, that no node or namespace can have.

    Raises:
        Refused: for the first key or value with other letters.
    """
    for key, value in labels.items():
        qualified(key, at)
        for problem in value_problems(value):
            raise Refused(f"{at}[{key}]", value, problem)


def within_limits(pod: Json, at: str) -> None:
    """Refuse requests of a *pod* spec at the field *at* that no API server takes.

    Raises:
        Refused: for a request above its limit, or a whole pod's below those of its containers.
    """
    containers = pod.get("containers") or []
    summed: dict[str, Any] = {}
    for i, one in enumerate([*containers, pod]):
        where = at if one is pod else f"{at}.containers[{i}]"
        resources = one.get("resources") or {}
        limits = resources.get("limits") or {}
        for name, amount in (resources.get("requests") or {}).items():
            asked = parse(str(amount))
            field = f"{where}.resources.requests[{name}]"
            if name in limits and asked > parse(str(limits[name])):
                raise Refused(field, amount, f"must be at most its limit, {limits[name]}")
            if one is pod and asked < summed.get(name, 0):
                raise Refused(field, amount, "must be at least the sum over the containers")
            summed[name] = summed.get(name, 0) + asked
