"""The functions that Kubernetes adds to CEL.

The library brings those of the language itself. Values that CEL has no type for are kept as
texts: quantities as exact fractions, addresses and URLs as they are written.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from lockstep.api.quantity import parse
from lockstep.apiserver.schema.patterns import compiled, found

Function = Callable[..., Any]

_LONGEST = 3 << 20
"""Characters of a text that a rule makes: as many as a whole object may have."""


def _is(read: Callable[[str], object]) -> Function:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _url(text: str) -> str:
    parts = urlsplit(text)
    if not (parts.scheme and parts.netloc) and not text.startswith("/"):
        raise ValueError(f"invalid URI for request: {text!r}")
    return text


def _quantity(text: str) -> str:
    return str(parse(text))


def _quantity_of(value: Any) -> Fraction:
    return Fraction(value) if isinstance(value, str) else Fraction(str(value))


def _compare(a: str, b: str) -> int:
    left, right = _quantity_of(a), _quantity_of(b)
    return (left > right) - (left < right)


def _as_integer(text: str) -> int:
    value = _quantity_of(text)
    if value.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(value)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    places = text.count(old) if count < 0 else min(count, text.count(old))
    _require_short(len(text) + places * (len(new) - len(old)))
    return text.replace(old, new, count)


def _join(items: list[str], separator: str = "") -> str:
    _require_short(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _require_short(length: int) -> None:
    if length > _LONGEST:
        raise ValueError(f"the text would be longer than {_LONGEST} characters")


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator == "":
        return list(text)
    return text.split(separator, -1 if count < 0 else count - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise ValueError("index out of range")
    return text[start:stop]


def _find(text: str, pattern: str) -> str:
    match = found(pattern, text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found(pattern, text)
    matches = (match[0] for match in compiled(pattern).finditer(text))
    return list(itertools.islice(matches, count) if count >= 0 else matches)


def _index_of(holder: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(holder, str):
        return holder.find(wanted, start)
    return next((i for i, item in enumerate(holder) if item == wanted), -1)


def _last_index_of(holder: Any, wanted: Any) -> int:
    if isinstance(holder, str):
        return holder.rfind(wanted)
    return next((i for i in reversed(range(len(holder))) if holder[i] == wanted), -1)


def _extreme(choose: Callable[[Any], Any]) -> Function:
    def function(*values: Any) -> Any:
        return choose(values[0] if len(values) == 1 and isinstance(values[0], list) else values)

    return function


def _is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(items))


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept


FUNCTIONS: dict[str, Function] = {
    # texts
    "charAt": lambda text, at: _substring(text, at, min(at + 1, len(text))),
    "find": _find,
    "findAll": _find_all,
    "join": _join,
    # In place of the library's own: its dialect and its limits are those of Go.
    "matches": lambda text, pattern: found(pattern, text) is not None,
    "lowerAscii": lambda text: text.lower(),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: text.strip(),
    "upperAscii": lambda text: text.upper(),
    # lists
    "distinct": _distinct,
    "indexOf": _index_of,
    "isSorted": _is_sorted,
    "lastIndexOf": _last_index_of,
    "max": _extreme(max),
    "min": _extreme(min),
    "reverse": lambda given: given[::-1],
    "slice": lambda items, start, end: items[start:end],
    "sort": sorted,
    "sum": sum,
    # quantities
    "add": lambda a, b: str(_quantity_of(a) + _quantity_of(b)),
    "asApproximateFloat": lambda text: float(_quantity_of(text)),
    "asInteger": _as_integer,
    "compareTo": _compare,
    "isGreaterThan": lambda a, b: _compare(a, b) > 0,
    "isInteger": lambda text: _quantity_of(text).denominator == 1,
    "isLessThan": lambda a, b: _compare(a, b) < 0,
    "isQuantity": _is(parse),
    "quantity": _quantity,
    "sign": lambda text: _compare(text, "0"),
    "sub": lambda a, b: str(_quantity_of(a) - _quantity_of(b)),
    # addresses
    "cidr": lambda text: str(ipaddress.ip_network(text, strict=False)),
    "containsIP": lambda net, ip: ipaddress.ip_address(ip) in ipaddress.ip_network(net),
    "family": lambda text: ipaddress.ip_address(text).version,
    "getHost": lambda text: urlsplit(text).netloc.rpartition("@")[2],
    "getHostname": lambda text: urlsplit(text).hostname or "",
    "getPort": lambda text: str(urlsplit(text).port or ""),
    "getScheme": lambda text: urlsplit(text).scheme,
    "getEscapedPath": lambda text: urlsplit(text).path,
    "ip": lambda text: str(ipaddress.ip_address(text)),
    "isCIDR": _is(ipaddress.ip_network),
    "isIP": _is(ipaddress.ip_address),
    "isURL": _is(_url),
    "prefixLength": lambda text: ipaddress.ip_network(text).prefixlen,
    "url": _url,
}

# What the library itself knows.
LANGUAGE = frozenset(
    {
        *("bool", "bytes", "contains", "double", "duration", "dyn", "endsWith", "int"),
        *("size", "startsWith", "string", "timestamp", "type", "uint"),
        *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"),
        *("getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
        *("hasValue", "orValue", "value"),
    }
)
