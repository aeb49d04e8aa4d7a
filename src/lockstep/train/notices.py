"""Notices that a machine goes away soon, as clouds give them for spot instances.

The launcher asks the address that the pod's variable ``LOCKSTEP_SPOT_NOTICE`` names: a URL, or one
of the clouds below. An answer that means "soon" makes it save what its ranks hold at once, and say
so in its report; the job then goes on elsewhere while the machine is still there.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EVERY = 2.0
"""Seconds between two questions; the shortest notice is 30 s."""
VARIABLE = "LOCKSTEP_SPOT_NOTICE"
_TIMEOUT = 2.0
_LONGEST = 1 << 16
_MACHINE = "http://169.254.169.254"


@dataclass(frozen=True)
class Source:
    """Where to ask, and which answers mean that the machine goes."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    means: Callable[[str], bool] = bool
    token: str = ""
    """Where a token is had first, by PUT (AWS, IMDSv2)."""


def _scheduled(text: str) -> bool:
    """Say whether Azure's document lists an event that ends the machine."""
    events: list[dict[str, Any]] = json.loads(text or "{}").get("Events", [])
    return any(one.get("EventType") in ("Preempt", "Terminate") for one in events)


CLOUDS = {
    "aws": Source(
        f"{_MACHINE}/latest/meta-data/spot/instance-action", token=f"{_MACHINE}/latest/api/token"
    ),
    "gcp": Source(
        "http://metadata.google.internal/computeMetadata/v1/instance/preempted",
        {"Metadata-Flavor": "Google"},
        lambda text: text.strip().upper() == "TRUE",
    ),
    "azure": Source(
        f"{_MACHINE}/metadata/scheduledevents?api-version=2020-07-01",
        {"Metadata": "true"},
        _scheduled,
    ),
}


def source(named: str) -> Source | None:
    """Return where to ask, as *named*: a cloud or a URL.

    A URL gives notice by any answer with a body and a status below 300; 404 and 204 mean none.
    """
    if named.startswith(("http://", "https://")):
        return Source(named)
    return CLOUDS.get(named)


def noticed(where: Source) -> str:
    """Return what *where* says of the machine's end; nothing while there is none, or no answer."""
    headers = dict(where.headers)
    try:
        if where.token:
            ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
            headers["X-aws-ec2-metadata-token"] = _ask(where.token, ttl, "PUT")
        text = _ask(where.url, headers, "GET")
        return " ".join(text.split())[:200] if where.means(text) else ""
    except (OSError, ValueError):
        return ""


def _ask(url: str, headers: dict[str, str], method: str) -> str:
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310  as named
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
        text: str = answer.read(_LONGEST).decode(errors="replace")
        return text


def watch(named: str, tell: Callable[[str], None]) -> None:
    """Call *tell* once with the notice, in a thread of its own, where *named* says whom to ask."""
    where = source(named)
    if where is None:
        return

    def look() -> None:
        while not (said := noticed(where)):
            time.sleep(EVERY)
        tell(said)

    threading.Thread(target=look, daemon=True).start()
