"""Resource templates of Argo, and what graphs and resources give."""

from __future__ import annotations

import re

from lockstep.api.wire import Json
from lockstep.compat.argo import conditions, expressions
from lockstep.compat.argo.fields import only, origin
from lockstep.compat.translation import Refused


def resource(given: Json, at: str) -> Json:
    """Return the object of a resource template, and what is to be done with it.

    Raises:
        Refused: when it asks for what is not done here.
    """
    import yaml

    only(
        given,
        frozenset(
            {"action", "failureCondition", "manifest", "setOwnerReference", "successCondition"}
        ),
        at,
    )
    actions = {"create": "Create", "apply": "Apply", "get": "Get", "delete": "Delete"}
    action = actions.get(given.get("action", ""))
    if action is None:
        raise Refused(f"{at}.action", given.get("action"), f"known are {', '.join(actions)}")
    try:
        tree = yaml.safe_load(expressions.text(given.get("manifest") or "", f"{at}.manifest"))
    except yaml.YAMLError as error:
        raise Refused(f"{at}.manifest", None, f"is no YAML: {error}") from None
    if not isinstance(tree, dict):
        raise Refused(f"{at}.manifest", None, "must be one object")
    found: Json = {"action": action, "object": tree}
    for ours, theirs in (("success", "successCondition"), ("failure", "failureCondition")):
        if given.get(theirs):
            found[ours] = conditions.condition(given[theirs], f"{at}.{theirs}")
    return found


def resource_outputs(outputs: Json, at: str) -> Json:
    """Return what is read from the object of a resource template."""
    found: Json = {}
    for one in outputs.get("parameters") or []:
        where = f"{at}.outputs.parameters.{one['name']}"
        if (one.get("valueFrom") or {}).get("jqFilter") == ".":
            found[one["name"]] = "${{ json(object) }}"
            continue
        source = (one.get("valueFrom") or {}).get("jsonPath", "")
        path = source.strip("{}").lstrip(".")
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", path):
            raise Refused(where, source, "needs valueFrom.jsonPath, as {.status.phase}")
        found[one["name"]] = "${{ toText(object." + path + ") }}"
    return found


def graph_outputs(outputs: Json, at: str) -> Json:
    """Return what a graph gives of what its steps gave."""
    found: Json = {}
    for one in outputs.get("parameters") or []:
        source = one.get("valueFrom") or {}
        where = f"{at}.outputs.parameters.{one['name']}"
        if "parameter" in source:
            found[one["name"]] = expressions.text(source["parameter"], where)
        elif "default" in source and set(source) == {"default"}:
            found[one["name"]] = str(source["default"])
        elif "expression" in source:
            code = expressions.expression(source["expression"], where)
            found[one["name"]] = "${{ " + code + " }}"
        else:
            raise Refused(where, None, "needs valueFrom.parameter or valueFrom.expression")
    for one in outputs.get("artifacts") or []:
        where = f"{at}.outputs.artifacts.{one['name']}"
        if "from" not in one and "fromExpression" not in one:
            raise Refused(where, None, "needs from or fromExpression")
        found[expressions.kept(one["name"])] = origin(one, where)
    return found
