"""Under which key a step's result is kept: its image, command and code, and what went in."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lockstep.api.wire import Json
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.nodes import Node, there
from lockstep.pipelines.core.values import render


def key_of(engine: Engine, node: Node) -> str:
    """Return the key of what *node* gives; the same inputs and code have the same key.

    Where an artefact comes from does not count where its digest is known; nor does the name of
    the run, or where outputs go.

    Raises:
        BadExpression: when the step refers to what there is not.
    """
    keep = there(node.task.keep)
    same = {"name": "run", "uid": "uid", "created": "", "status": "Running"}
    run = {**engine.variables(node)["run"], **same}
    inputs = {name: _by_content(value) for name, value in node.inputs.items()}
    item = _by_content(node.item)
    seen: Json = {"inputs": inputs, "run": run, "item": item}
    if keep.key:
        what: Any = ["key", render(keep.key, {**seen, "inputs": node.inputs})]
    else:
        what = [_shape(node, seen)]
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _shape(node: Node, seen: Json) -> Any:
    template = node.template
    if template.pod is None:
        return [render(_tree(template.object), seen), seen["inputs"]]
    pod = template.pod
    outputs = {one.name: {"uri": one.name, "path": one.path} for one in pod.outputs}
    step = {"name": "step", "id": "step", "attempt": 0, "pod": "pod"}
    named = {**seen, "outputs": outputs, "step": step}
    wanted = [[one.name, one.kind, one.path] for one in pod.outputs]
    return [render(pod.template, named), wanted, seen["inputs"]]


def _tree(obj: Any) -> Any:
    from lockstep.api.wire import to_builtins

    return to_builtins(obj)


def _by_content(value: Any) -> Any:
    """Return *value* with artefacts known by their digests where they have one."""
    if isinstance(value, list):
        return [_by_content(one) for one in value]
    if isinstance(value, dict):
        if value.get("digest") and "uri" in value:
            return {**value, "uri": value["digest"], "name": ""}
        return {key: _by_content(one) for key, one in value.items()}
    return value
