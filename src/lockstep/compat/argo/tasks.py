"""How a step of Argo runs: loops, retries, hooks."""

from __future__ import annotations

import json
import re
from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.argo import conditions, expressions
from lockstep.compat.argo.expressions import quote
from lockstep.compat.argo.fields import number, only, seconds
from lockstep.compat.translation import Refused

_DURING: Final = re.compile(r"""\b(?:steps|tasks|workflow)\b[^=]*\.status\s*==\s*['"]Running['"]""")


def loop(step: Json, at: str) -> Json:
    """Return the loop of a step, if it has one.

    Raises:
        Refused: when its items cannot be told.
    """
    if "withParam" in step:
        return {"loop": {"items": expressions.text(step["withParam"], f"{at}.withParam")}}
    if "withItems" in step:
        items = expressions.tree(step["withItems"], f"{at}.withItems")
        if "${{" not in json.dumps(items):
            return {"loop": {"items": json.dumps(items)}}
        raise Refused(f"{at}.withItems", None, "items must be constants; use withParam")
    if "withSequence" in step:
        return {"loop": {"items": _sequence(step["withSequence"], f"{at}.withSequence")}}
    return {}


def _sequence(given: Json, at: str) -> str:
    only(given, frozenset({"count", "end", "format", "start"}), at)
    code = {}
    for field in ("start", "end", "count"):
        text = expressions.text(str(given.get(field, "")), f"{at}.{field}")
        if "${{" in text:
            code[field] = "".join(["toText(", text.replace("${{", "").replace("}}", ""), ")"])
        else:
            code[field] = quote(text)
    pattern = str(given.get("format", "%d"))
    if not re.fullmatch(r"[^%]*%0?\d{0,3}[dxX][^%]*", pattern):
        raise Refused(f"{at}.format", pattern, "write one such as testuser%02d")
    words = f"{code['start']}, {code['end']}, {code['count']}, {quote(pattern)}"
    return "${{ sequence(" + words + ") }}"


def retry(strategy: Json, at: str) -> Json:
    """Return how often and when a step is tried again."""
    fields = frozenset({"backoff", "expression", "limit", "retryPolicy"})
    only(strategy, fields, at)
    policy = strategy.get("retryPolicy", "OnFailure")
    # Faults of nodes are tried again in any case.
    limit = 0
    if policy in ("Always", "OnFailure", "OnTransientError"):
        limit = number(strategy.get("limit", 1000), f"{at}.limit")
    found: Json = {"limit": min(limit, 1000)}
    backoff = strategy.get("backoff") or {}
    if backoff.get("duration"):
        found["backoff"] = seconds(backoff["duration"], f"{at}.backoff.duration")
    if backoff.get("factor"):
        found["factor"] = number(backoff["factor"], f"{at}.backoff.factor")
    longest = backoff.get("cap") or backoff.get("maxDuration")
    if longest:
        found["longest"] = seconds(longest, f"{at}.backoff.cap")
    if strategy.get("expression"):
        found["when"] = expressions.expression(strategy["expression"], f"{at}.expression")
    return found


def hooks(step: Json, at: str) -> list[Json]:
    """Return the hooks of a step as steps that follow it, failed or not.

    Raises:
        Refused: for one that starts while the step runs, or for those of a loop.
    """
    given = dict(step.get("hooks") or {})
    if step.get("onExit"):
        given.setdefault("exit", {"template": step["onExit"]})
    found = []
    for name, hook in given.items():
        where = f"{at}.hooks.{name}"
        only(hook, frozenset({"arguments", "expression", "template", "templateRef"}), where)
        if any(field in step for field in ("withItems", "withParam", "withSequence")):
            raise Refused(where, None, "a step with a loop can have no hooks")
        text = str(hook.get("expression") or "")
        if _DURING.search(text):
            raise Refused(where, text, "hooks that start while a step runs are not served")
        task = f"tasks[{quote(step['name'])}]"
        when = f'{task}.state in ["Succeeded", "Failed", "Stopped"]'
        if text:
            when += f" && ({expressions.expression(text, f'{where}.expression')})"
        rest = {key: hook[key] for key in ("arguments", "template", "templateRef") if key in hook}
        found.append({**rest, "name": f"{step['name']}-{name}-hook", "ours": when})
    return found


def targets(dag: Json, at: str) -> list[Json]:
    """Return the tasks of a DAG that its ``target`` needs; all where it names none."""
    tasks = {one["name"]: one for one in dag.get("tasks") or []}
    if not dag.get("target"):
        return [*tasks.values()]
    wanted: set[str] = set()
    left = str(dag["target"]).split()
    while left:
        name = left.pop()
        if name in wanted:
            continue
        if name not in tasks:
            raise Refused(f"{at}.target", name, f"there is no such task: {', '.join(tasks)}")
        wanted.add(name)
        left += tasks[name].get("dependencies") or []
        if "depends" in tasks[name]:
            left += conditions.depends(tasks[name]["depends"], f"{at}.depends")[0]
    return [one for name, one in tasks.items() if name in wanted]


def steps_of(template: Json) -> list[Json]:
    """Return the steps of a template, a list of steps or a graph."""
    groups = template.get("steps") or []
    tasks = (template.get("dag") or {}).get("tasks") or []
    return [*(one for group in groups for one in group), *tasks]
