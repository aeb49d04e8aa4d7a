"""What every part of a workflow is read with: known fields, durations, parameters, artefacts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lockstep.api import duration
from lockstep.api.wire import Json
from lockstep.compat.argo import expressions
from lockstep.compat.argo.expressions import quote
from lockstep.compat.translation import Refused

_SOURCELESS: Final = ("name", "path", "mode", "optional", "archive", "recurseMode", "globalName")


def only(tree: Mapping[str, Any], fields: frozenset[str], at: str) -> None:
    """Refuse the first field of *tree* that is none of *fields*.

    Raises:
        Refused: by the field's name.
    """
    for field in tree:
        if field not in fields:
            raise Refused(f"{at}.{field}", None, "it is not served by Lockstep; leave it out")


def seconds(given: Any, at: str) -> str:
    """Return a duration of Argo, seconds where no unit stands, in our words.

    Raises:
        Refused: when it is none, as where it is an expression.
    """
    text = f"{given}s" if str(given).isdigit() else str(given)
    try:
        duration.parse(text)
    except ValueError:
        raise Refused(at, given, "must be a duration such as 30s, not an expression") from None
    return text


def number(given: Any, at: str) -> int:
    """Return a number that may stand in quotes.

    Raises:
        Refused: when it is none, as where it is an expression.
    """
    try:
        return int(given)
    except (TypeError, ValueError):
        raise Refused(at, given, "must be a number, not an expression") from None


def parameters(given: Json | None, at: str) -> Json:
    """Return the parameters of arguments or inputs by name; those without a value are None.

    Raises:
        Refused: when one has its value from somewhere that is not served.
    """
    found: Json = {}
    for place, one in enumerate((given or {}).get("parameters") or []):
        value = one.get("value", one.get("default"))
        if "valueFrom" in one:
            where = f"{at}.parameters[{place}].valueFrom"
            if set(one["valueFrom"]) - {"default"}:
                raise Refused(where, None, "it is not served here; give a value")
            value = one["valueFrom"]["default"]
        found[one["name"]] = value if value is None or isinstance(value, str) else json.dumps(value)
    return found


def inputs(source: Json, at: str) -> Json:
    """Return the inputs of a template, and the defaults of those that have one."""
    given = source.get("inputs") or {}
    names: list[str] = []
    defaults: Json = {}
    for name, value in parameters(given, f"{at}.inputs").items():
        if value is None:
            names.append(name)
        else:
            defaults[name] = expressions.text(value, f"{at}.inputs")
    for place, one in enumerate(given.get("artifacts") or []):
        made = artifact(one, f"{at}.inputs.artifacts[{place}]")
        if made is not None:
            defaults[one["name"]] = made
        elif one.get("optional"):
            defaults[one["name"]] = None
        else:
            names.append(one["name"])
    return {"inputs": names, "defaults": defaults}


def artifact(one: Json, at: str) -> Any:
    """Return where an artefact comes from; None where it says nothing about that.

    Raises:
        Refused: when it comes from somewhere that is not served.
    """
    name = one["name"]
    made: Json = {"name": name, "type": "", "metadata": {}}
    if "from" in one or "fromExpression" in one:
        return origin(one, at)
    if "raw" in one:
        return {**made, "uri": "raw:", "raw": expressions.text(one["raw"]["data"], f"{at}.raw")}
    if "http" in one:
        only(one["http"], frozenset({"url"}), f"{at}.http")
        return {**made, "uri": expressions.text(one["http"]["url"], f"{at}.http.url")}
    if "s3" in one:
        return {**made, "uri": stored(one["s3"], f"{at}.s3")}
    for field in one:
        if field not in _SOURCELESS:
            raise Refused(f"{at}.{field}", None, "artefacts come from s3, http, raw or a step")
    return None


def origin(one: Json, at: str) -> str:
    """Return the artefact of another step that ``from`` or ``fromExpression`` names.

    Raises:
        Refused: when it names none.
    """
    if "fromExpression" in one:
        code = expressions.expression(one["fromExpression"], f"{at}.fromExpression")
    else:
        place = str(one.get("from", "")).strip()
        if not (place.startswith("{{") and place.endswith("}}")):
            raise Refused(f"{at}.from", place, "write one such as {{steps.a.outputs.artifacts.b}}")
        inner = place[2:-2].strip()
        if inner.startswith("="):
            code = expressions.expression(inner[1:], f"{at}.from")
        else:
            code = expressions.reference(inner, f"{at}.from")
    if "subPath" not in one:
        return "${{ " + code + " }}"
    below = expressions.text(f"/{one['subPath']}", f"{at}.subPath")
    if "${{" in below:
        raise Refused(f"{at}.subPath", one["subPath"], "must be constant")
    name = quote(one["name"])
    made = f'{{"name": {name}, "type": "", "metadata": {{}}, "uri": ({code}).uri + {quote(below)}}}'
    return "${{ " + made + " }}"


def stored(s3: Json, at: str) -> str:
    """Return the address of what lies in S3; a key alone lies below the run's root."""
    for field in s3:
        if field not in {"bucket", "key"}:
            remedy = (
                "the store and its keys are those of lockstep.dev/artifact-secret; leave it out"
            )
            raise Refused(f"{at}.{field}", None, remedy)
    if not s3.get("key"):
        raise Refused(f"{at}.key", None, "name the key")
    key = expressions.text(str(s3["key"]).rstrip("/"), f"{at}.key")
    if not s3.get("bucket"):
        return "${{ run.root }}/" + key
    return expressions.text(f"s3://{s3['bucket']}/", f"{at}.bucket") + key


def arguments(given: Json, at: str, defaults: Mapping[str, Any]) -> Json:
    """Return the values that a step gives; for one of *defaults*, one that may be missing."""
    found = {}
    for name, value in parameters(given, at).items():
        where = f"{at}.{name}"
        maybe = expressions.perhaps(value, where) if value and name in defaults else None
        found[name] = maybe or expressions.text(value or "", where)
    for place, one in enumerate(given.get("artifacts") or []):
        found[one["name"]] = artifact(one, f"{at}.artifacts[{place}]")
    return found
