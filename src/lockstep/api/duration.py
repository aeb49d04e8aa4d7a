"""Durations as people write them: ``90s``, ``2h``, ``1h30m``, ``1d``."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"
Duration = Annotated[str, Meta(pattern=PATTERN)]


def parse(text: str) -> float:
    """Return the duration *text* in seconds.

    Raises:
        ValueError: when it is not a duration; the message shows what one looks like.
    """
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write one such as 90s, 30m, 2h or 1h30m")
    return sum(float(n) * _UNIT[u] for n, u in parts)


def show(seconds: float) -> str:
    """Return *seconds* in at most two units, as people say it: ``45s``, ``3m20s``, ``2d4h``."""
    whole = max(0, int(seconds))
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for i, (unit, size) in enumerate(units):
        if whole >= size:
            count, rest = divmod(whole, size)
            if i + 1 < len(units) and rest >= units[i + 1][1]:
                return f"{count}{unit}{rest // units[i + 1][1]}{units[i + 1][0]}"
            return f"{count}{unit}"
    return "0s"
