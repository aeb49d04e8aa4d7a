"""What we answer to the questions on record, in the form in which answers are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.schema import Schema

Json = dict[str, Any]

KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTINS}
_UNCHECKED = "some validation rules were not checked"


def builtin(given: Json) -> Json:
    """Return what we say of an object of a built-in kind."""
    obj = copy.deepcopy(given)
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    schema = Schema.builtin(kind.schema_name)
    if error := schema.decoding_error(obj):
        return {"error": error}
    schema.prune(obj)
    kind.prepare(obj, None)
    kind.begin(obj)
    errors = [str(cause) for cause in kind.validate(obj, None)]
    return comparable_builtin({"object": obj, "errors": errors})


def comparable_builtin(answer: Json) -> Json:
    """Return *answer* without what has no order, or is another part's to fill in."""
    if "error" in answer:
        return {"error": answer["error"]}
    if answer["errors"]:
        # What is refused is never stored, in whatever form.
        return {"errors": sorted(answer["errors"])}
    return {"object": {name: part for name, part in answer["object"].items() if name != "status"}}


def custom(given: Json) -> Json:
    """Return what we say of a custom resource and of its definition."""
    crd, obj, old = (copy.deepcopy(given.get(name)) for name in ("crd", "object", "old"))
    kind = KINDS[crd["apiVersion"], crd["kind"]]
    kind.prepare(crd, None)
    answer: Json = {"crd": [str(cause) for cause in kind.validate(crd, None)]}
    if obj is not None:
        schema = Schema.parse(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        answer["unknown"] = schema.prune(obj)
        schema.default(obj)
        answer["errors"] = [str(cause) for cause in schema.validate(obj, old)]
        answer["object"] = obj
    return comparable_custom(answer)


def comparable_custom(answer: Json) -> Json:
    """Return *answer* without what has no order."""
    if "errors" not in answer:
        return {"crd": sorted(answer["crd"])}
    return {
        "crd": sorted(answer["crd"]),
        "unknown": sorted(answer["unknown"] or []),
        "errors": sorted(text for text in answer["errors"] if _UNCHECKED not in text),
        "object": answer["object"],
    }


OURS: dict[str, Callable[[Json], Json]] = {"builtin": builtin, "custom": custom}
COMPARABLE: dict[str, Callable[[Json], Json]] = {
    "builtin": comparable_builtin,
    "custom": comparable_custom,
}
