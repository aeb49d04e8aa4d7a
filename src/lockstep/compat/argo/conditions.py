"""Conditions of Argo on tasks and on resources, in CEL."""

from __future__ import annotations

import re
from typing import Final

from lockstep.compat.argo.expressions import compared, quote
from lockstep.compat.translation import Refused

_PATH: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_AMONG: Final = re.compile(r"\s*([\w.]+)\s+(in|notin)\s+\(([^()]*)\)\s*")
_DEPENDS: Final = re.compile(
    r"\s*(?:(?P<sign>&&|\|\||!|\(|\))|(?P<name>[\w-]+)(?:\.(?P<state>\w+))?)"
)
_STATES: Final = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Errored": "Failed",
    "Skipped": "Skipped",
    "Omitted": "Omitted",
}


def depends(given: str, at: str) -> tuple[list[str], str]:
    """Return the tasks of a ``depends``, and the condition in CEL; empty where it is the usual.

    Raises:
        Refused: when it is no condition on tasks.
    """
    names: dict[str, None] = {}
    found: list[str] = []
    usual = True
    end = 0
    for token in _DEPENDS.finditer(given):
        if token.start() != end:
            break
        end = token.end()
        if (sign := token["sign"]) is not None:
            usual = usual and sign == "&&"
            found.append(sign)
            continue
        name, state = token["name"], token["state"]
        names[name] = None
        usual = usual and state is None
        found.append(_state(name, state, at))
    if given[end:].strip() or not names:
        raise Refused(at, given, "is no condition; write one such as 'a.Succeeded && b.Failed'")
    return [*names], "" if usual else " ".join(found)


def _state(name: str, state: str | None, at: str) -> str:
    task = f"tasks[{quote(name)}].state"
    if state is None:
        return f'({task} in ["Succeeded", "Skipped"])'
    if state not in _STATES:
        raise Refused(at, state, f"is not served; known are {', '.join(_STATES)}")
    return f"({task} == {quote(_STATES[state])})"


def condition(given: str, at: str) -> str:
    """Return a success or failure condition of a resource, as ``status.succeeded > 0``, in CEL.

    Raises:
        Refused: when it is no such condition.
    """
    found: list[str] = []
    for part in re.split(r",(?![^()]*\))", given):
        several = _AMONG.fullmatch(part)
        if several is not None:
            words = [quote(one.strip()) for one in several[3].split(",")]
            own = f"toText(object.{several[1]}) in [{', '.join(words)}]"
            own = own if several[2] == "in" else f"!({own})"
            found.append(f"({_there(several[1])} && {own})")
            continue
        match = re.fullmatch(r"\s*([\w.-]+)\s*(==|=|!=|>=|<=|>|<)\s*(.+?)\s*", part)
        if match is None or not _PATH.fullmatch(match[1]):
            raise Refused(at, part, "write one such as 'status.succeeded > 0'")
        path, sign, value = match[1], match[2], match[3]
        own = compared(f"toText(object.{path})", "==" if sign == "=" else sign, quote(value))
        found.append(f"({_there(path)} && {own})")
    return " && ".join(found)


def _there(path: str) -> str:
    steps = path.split(".")
    return " && ".join(f"has(object.{'.'.join(steps[: i + 1])})" for i in range(len(steps)))
