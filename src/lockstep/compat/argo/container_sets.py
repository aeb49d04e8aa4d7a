"""Container sets: the containers of one pod, each started once those it depends on are over."""

from __future__ import annotations

import shlex
from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.argo.commands import words_of
from lockstep.compat.argo.fields import only
from lockstep.compat.translation import Refused

PLACE: Final = "/lockstep-set"
"""Where each container leaves its exit code for those that wait for it."""
_VOLUME: Final = "lockstep-set"


def containers(source: Json, at: str) -> list[Json]:
    """Return the containers of a set, which wait for each other.

    Raises:
        Refused: when one waits for what there is not, or names no command though it must.
    """
    given = source["containerSet"]
    only(given, frozenset({"containers", "volumeMounts"}), f"{at}.containerSet")
    made = given.get("containers") or []
    names = [one["name"] for one in made]
    waited = {name for one in made for name in one.get("dependencies") or []}
    found = []
    for one in made:
        where = f"{at}.containerSet.containers[{one['name']}]"
        before = one.get("dependencies") or []
        if unknown := sorted(set(before) - set(names)):
            raise Refused(f"{where}.dependencies", unknown[0], f"there are {', '.join(names)}")
        mounts = [*(one.get("volumeMounts") or []), *(given.get("volumeMounts") or [])]
        container = {key: value for key, value in one.items() if key != "dependencies"}
        if mounts:
            container["volumeMounts"] = mounts
        if before or one["name"] in waited:
            container = _ordered(container, before, where)
        found.append(container)
    if _cycle({one["name"]: one.get("dependencies") or [] for one in made}):
        raise Refused(f"{at}.containerSet.containers", None, "they wait for each other in a circle")
    return found


def volumes(source: Json) -> list[Json]:
    """Return the volume in which the containers of a set tell each other of their ends."""
    waits = any(one.get("dependencies") for one in source["containerSet"]["containers"])
    return [{"name": _VOLUME, "emptyDir": {}}] if waits else []


def _ordered(container: Json, before: list[str], at: str) -> Json:
    name = container["name"]
    lines = []
    for one in before:
        file = shlex.quote(f"{PLACE}/{one}")
        lines.append(f"until [ -s {file} ]; do sleep 0.1; done")
        lines.append(f'[ "$(cat {file})" = 0 ] || exit 64')
    lines += ['"$0" "$@"', "code=$?", f"echo $code > {PLACE}/{name}.part"]
    lines += [f"mv {PLACE}/{name}.part {PLACE}/{name}", "exit $code"]
    return {
        **container,
        "command": ["sh", "-c", "\n".join(lines)],
        "args": words_of(container, at),
        "volumeMounts": [
            *(container.get("volumeMounts") or []),
            {"name": _VOLUME, "mountPath": PLACE},
        ],
    }


def _cycle(before: dict[str, list[str]]) -> bool:
    left = dict(before)
    while left:
        free = [name for name, others in left.items() if not set(others) & set(left)]
        if not free:
            return True
        for name in free:
            del left[name]
    return False
