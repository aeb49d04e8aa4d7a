"""The command of a container, also where its image alone says it."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.translation import Refused

_ENTRYPOINTS: Final = {
    "argoproj/argosay:v1": ["cowsay"],
    "argoproj/argosay:v2": ["/argosay"],
    "docker/whalesay:latest": ["/bin/bash"],
}
"""What images run whose command is left out, where a step must know: as Argo is told of them."""


def words_of(container: Json, at: str) -> list[Any]:
    """Return the command of *container* and its arguments.

    Raises:
        Refused: when it leaves its command to its image, which is not known.
    """
    command = container.get("command") or _ENTRYPOINTS.get(str(container.get("image")).strip())
    if not command:
        why = "a step whose output is used or that others wait for needs its command"
        raise Refused(f"{at}.container.command", None, why)
    return [*command, *(container.get("args") or [])]
