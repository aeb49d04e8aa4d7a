"""The placeholders of KFP's components, as expressions of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from lockstep.compat.translation import Refused

EXECUTOR: Final = "lockstep-executor-output"
"""Name of the output that is the file in which a component writes all its results."""
FILES: Final = "/tmp/kfp"  # noqa: S108 - inside the container
EXECUTOR_FILE: Final = f"{FILES}/executor_output.json"
PLACE: Final = re.compile(r"\{\{\$(.*?)\}\}")
_ITEM: Final = re.compile(
    r"\.(inputs|outputs)\.(parameters|artifacts)\[(?:'([^']+)'|\"([^\"]+)\")\](.*)"
)
_METADATA: Final = re.compile(r"\.metadata\[(?:'([^']+)'|\"([^\"]+)\")\]")
_RUN: Final = {
    ".pipeline_job_name": "run.name",
    ".pipeline_job_resource_name": "run.name",
    ".pipeline_job_uuid": "run.uid",
    ".pipeline_job_create_time_utc": "run.created",
    ".pipeline_job_schedule_time_utc": "run.created",
}
_STEP: Final = {".pipeline_task_name": "step.name", ".pipeline_task_uuid": "step.pod"}


def literal(text: str) -> str:
    """Return *text* so that no part of it is taken for an expression of ours."""
    return text.replace("${{", "${{ '$' }}{{")


def quote(text: str) -> str:
    """Return *text* as a string of CEL."""
    return json.dumps(text, ensure_ascii=False)


def local(uri: str) -> str:
    """Return the expression of where the SDK looks for the artefact at the expression *uri*."""
    return f"mounted({uri})"


def text(given: str, at: str, component: Mapping[str, Any] | None = None) -> str:
    """Return *given* with its placeholders as expressions.

    Raises:
        Refused: when one of them is unknown.
    """
    found, end = [], 0
    for place in PLACE.finditer(given):
        found.append(literal(given[end : place.start()]))
        found.append("${{ " + expression(place[1], at, component) + " }}")
        end = place.end()
    found.append(literal(given[end:]))
    return "".join(found)


def argument(given: str, at: str, task: str, inputs: Mapping[str, str]) -> str:
    """Return a constant that a *task* is given, whose placeholders may name its other *inputs*.

    *inputs* holds an expression for each of them.

    Raises:
        Refused: when a placeholder is unknown.
    """
    found, end = [], 0
    for place in PLACE.finditer(given):
        found.append(literal(given[end : place.start()]))
        item = _ITEM.fullmatch(place[1])
        known = inputs.get(item[3] or item[4]) if item and not item[5] else None
        if known is not None:
            code = f"toText({known})"
        elif place[1] == ".pipeline_task_name":
            code = quote(task)
        elif place[1] == ".pipeline_task_uuid":
            code = f"run.uid + {quote('-' + task)}"
        else:
            code = expression(place[1], at, None)
        found.append("${{ " + code + " }}")
        end = place.end()
    found.append(literal(given[end:]))
    return "".join(found)


def expression(place: str, at: str, component: Mapping[str, Any] | None) -> str:
    """Return the expression for what stands between ``{{$`` and ``}}``.

    Raises:
        Refused: when it is unknown.
    """
    if place in _RUN:
        return _RUN[place]
    if component is not None:
        if place in _STEP:
            return _STEP[place]
        if place == "":
            return f"json({executor_input(component)})"
        item = _ITEM.fullmatch(place)
        if item:
            name = item[3] or item[4]
            known = _item(item[1], item[2], name, item[5])
            if known:
                return known
    raise Refused(at, "{{$" + place + "}}", "this placeholder is not known; leave it out")


def _item(side: str, what: str, name: str, rest: str) -> str:
    key = quote(name)
    if side == "outputs":
        paths = {".output_file": "path", ".path": "path", ".uri": "uri"}
        if what == "artifacts" and rest == ".metadata":
            return quote("{}")  # there is none before the step has run
        return f"outputs[{key}].{paths[rest]}" if rest in paths else ""
    value = f"inputs[{key}]"
    if what == "parameters":
        return f"toText({value})" if rest in ("", ".json_escape[0]", ".json_escape[1]") else ""
    if not rest:
        return f"json({_listed(value)})"
    if rest == ".metadata":
        return f"json({value}.metadata)"
    if rest == ".path":
        return local(f"{value}.uri")
    if rest == ".uri":
        return f"{value}.uri"
    if meta := _METADATA.fullmatch(rest):
        return f"toText({value}.metadata[{quote(meta[1] or meta[2])}])"
    return ""


def executor_input(component: Mapping[str, Any]) -> str:
    """Return the expression of the ExecutorInput that a component is handed."""
    inputs = component.get("inputDefinitions") or {}
    outputs = component.get("outputDefinitions") or {}
    values = ", ".join(f"{quote(n)}: inputs[{quote(n)}]" for n in inputs.get("parameters") or {})
    given = ", ".join(
        f"{quote(name)}: {_given(f'inputs[{quote(name)}]')}"
        for name in inputs.get("artifacts") or {}
    )
    files = ", ".join(
        f"{quote(n)}: {{'outputFile': outputs[{quote(n)}].path}}"
        for n in outputs.get("parameters") or {}
    )
    made = ", ".join(
        _made(quote(name), quote(type_of(one)))
        for name, one in (outputs.get("artifacts") or {}).items()
    )
    return (
        f"{{'inputs': {{'parameterValues': present({{{values}}}), "
        f"'artifacts': present({{{given}}})}}, "
        f"'outputs': {{'parameters': {{{files}}}, 'artifacts': {{{made}}}, "
        f"'outputFile': {quote(EXECUTOR_FILE)}}}}}"
    )


def _made(name: str, kind: str) -> str:
    return (
        f"{name}: {{'artifacts': [{{'name': {name}, 'uri': outputs[{name}].uri, 'type': "
        f"{{'schemaTitle': {kind}, 'schemaVersion': '0.0.1'}}, 'metadata': {{}}}}]}}"
    )


def _given(value: str) -> str:
    return f"({value} == null ? null : {{'artifacts': {_listed(value)}}})"


def _listed(value: str) -> str:
    """Return the expression of one artefact or several as the list that the SDK reads."""
    one = (
        "a, {'name': a.name, 'uri': a.uri, 'type': {'schemaTitle': a.type, "
        "'schemaVersion': '0.0.1'}, 'metadata': a.metadata}"
    )
    return f"flat({value}).map({one})"


def type_of(definition: Mapping[str, Any]) -> str:
    """Return the type of an artefact that a component defines."""
    known = definition.get("artifactType") or {}
    return str(known.get("schemaTitle") or known.get("instanceSchema") or "system.Artifact")
