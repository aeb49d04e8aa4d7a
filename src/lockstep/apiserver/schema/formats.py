"""The string formats that custom resources may ask for."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}\Z"
_DURATION = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)\s*(?:ns|us|µs|ms|s|m|h|d|w|nanoseconds?|microseconds?|milliseconds?"
    r"|seconds?|minutes?|hours?|days?|weeks?)(?![a-z])\s*"
)
_HOSTNAME = re.compile(
    r"^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])"
    r"(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*\Z"
)
DATE_TIME = r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})?\Z"
"""What a time of RFC 3339 looks like."""

BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"
"""What binary data looks like."""

QUANTITY_PATTERN = r"^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?\Z"
"""What an amount of something looks like."""

_QUANTITY = re.compile(QUANTITY_PATTERN)
_DATE_TIME = re.compile(DATE_TIME)
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def is_well_formed(name: str, text: str) -> bool:
    """Whether *text* has the format called *name*; formats that are not known accept all."""
    check = _CHECKS.get(name.replace("-", ""))
    return check is None or check(text)


def is_quantity(text: str) -> bool:
    """Whether *text* is an amount of something."""
    return _QUANTITY.match(text) is not None


def is_date_time(text: str) -> bool:
    """Whether *text* is a time as RFC 3339 writes it."""
    if not _DATE_TIME.match(text):
        return False
    return _parses(lambda: datetime.fromisoformat(text[:19]))


def _parses(parse: Callable[[], object]) -> bool:
    try:
        parse()
    except (ValueError, binascii.Error):
        return False
    return True


def _is_duration(text: str) -> bool:
    return text == "0" or (text != "" and _DURATION.sub("", text).strip() == "")


def _is_uri(text: str) -> bool:
    return _parses(lambda: urlsplit(text)) and (text.startswith("/") or bool(urlsplit(text).scheme))


def _is_cidr(text: str) -> bool:
    return "/" in text and _parses(lambda: ipaddress.ip_interface(text))


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.match(text) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    "byte": lambda text: _parses(lambda: base64.b64decode(text, validate=True)),
    "cidr": _is_cidr,
    "date": lambda text: len(text) == 10 and _parses(lambda: date.fromisoformat(text)),
    "datetime": is_date_time,
    "duration": _is_duration,
    "email": _matches(r"^[^@\s]+@[^@\s]+\Z"),
    "hexcolor": _matches(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z"),
    "hostname": lambda text: len(text) <= 255 and _HOSTNAME.match(text) is not None,
    "ipv4": lambda text: _parses(lambda: ipaddress.IPv4Address(text)),
    "ipv6": lambda text: _parses(lambda: ipaddress.IPv6Address(text)),
    "k8slongname": lambda text: (
        len(text) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text) is not None
    ),
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_LABEL, text) is not None,
    "mac": _matches(r"^([0-9a-fA-F]{2}[:-]){5,7}[0-9a-fA-F]{2}\Z"),
    "uri": _is_uri,
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
}
