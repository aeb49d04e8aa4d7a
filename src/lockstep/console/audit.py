"""Who did what, from where: the API server's audit log, or what went through the console itself.

The API server's own log (``audit.k8s.io/v1``, one event a line) tells of every client; without it
the console writes a log of the same shape of the changes that it carried out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lockstep.api import timestamp
from lockstep.api.wire import Json
from lockstep.keys.files import append_private

READ_BACK: Final = 8 << 20
"""Bytes of the end of a log that are looked through."""
LARGEST: Final = 16 << 20
"""Bytes at which the console's own log is put aside; one older file is kept."""
CHANGES: Final = ("create", "update", "patch", "delete", "deletecollection")
METHODS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Trail:
    """A log that is read, and the console's own where no other is named."""

    def __init__(self, log: Path | None, own: Path | None) -> None:
        self._log, self._own = log, own

    @property
    def source(self) -> str:
        """Return whose log it is: ``server`` or ``console``."""
        return "server" if self._log is not None else "console"

    def note(self, user: str, address: str, method: str, path: str, status: int) -> None:
        """Write down a change that went through the console."""
        if self._own is None or self._log is not None or method not in METHODS:
            return
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "stage": "ResponseComplete",
            "verb": METHODS[method],
            "requestURI": path[:500],
            "user": {"username": user},
            "sourceIPs": [address],
            "responseStatus": {"code": status},
            "requestReceivedTimestamp": timestamp.show(time.time()),
        }
        append_private(self._own, msgspec.json.encode(event), most=LARGEST)

    def latest(self, words: str, limit: int) -> list[Json]:
        """Return the latest changes that hold *words*, the newest first."""
        path = self._log or self._own
        found: list[Json] = []
        for line in _backwards(path) if path is not None else ():
            shown = _shown(line)
            if shown is None:
                continue
            if words and not any(words in str(value).lower() for value in shown.values()):
                continue
            found.append(shown)
            if len(found) == limit:
                break
        return found


def _backwards(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - READ_BACK))
            lines = file.read().split(b"\n")
    except OSError:
        return
    yield from reversed(lines if size <= READ_BACK else lines[1:])


def _shown(line: bytes) -> Json | None:
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("verb") not in CHANGES:
        return None
    of = event.get("objectRef")
    about = of if isinstance(of, dict) else {}
    user, answered = event.get("user"), event.get("responseStatus")
    named = [about.get(field) for field in ("namespace", "name", "subresource")]
    return {
        "time": str(event.get("requestReceivedTimestamp", "")),
        "user": str(user.get("username", "")) if isinstance(user, dict) else "",
        "verb": str(event["verb"]),
        "resource": str(about.get("resource", "")),
        "object": "/".join(str(one) for one in named if one) or str(event.get("requestURI", "")),
        "from": ", ".join(map(str, event.get("sourceIPs") or ())),
        "client": str(event.get("userAgent", ""))[:120],
        "status": answered.get("code") if isinstance(answered, dict) else None,
    }
