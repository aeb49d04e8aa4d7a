"""The channels of Kubernetes' remote commands within one WebSocket.

Each message begins with the number of its channel: 0 is the command's input, 1 its output, 2 its
errors, 3 how it ended, 4 the size of its terminal; 255 closes the channel that follows (v5).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, END, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a terminal, in characters."""

    width: int
    height: int


def ended(code: int) -> bytes:
    """Return the message that tells how a command ended."""
    return bytes([END]) + json.dumps(_status(code)).encode()


def failed(why: str) -> bytes:
    """Return the message that tells why a command could not be run."""
    status = {"status": "Failure", "message": why, "reason": "InternalError", "code": 500}
    return bytes([END]) + json.dumps({"metadata": {}, **status}).encode()


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def size(message: bytes) -> Size | None:
    """Return the size that a message of the channel `RESIZE` tells, if it makes sense."""
    try:
        told = json.loads(message)
        found = Size(int(told["Width"]), int(told["Height"]))
    except (ValueError, TypeError, KeyError):
        return None
    return found if 0 < found.width < 1 << 16 and 0 < found.height < 1 << 16 else None
