"""A training job out of the fields of the form."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from lockstep.api import duration, job_draft, names, quantity
from lockstep.api.imageless import NO_IMAGE
from lockstep.api.job_draft import Draft
from lockstep.api.wire import Json

FRAMEWORKS = ("pytorch", "mpi", "plain")
MOST_WORKERS = 100_000
TEXTS = ("name", "namespace", "queue", "framework", "image", "command", "environment", "priority")
NUMBERS = ("workers", "gpus", "fewest", "most")
FIELDS = frozenset({*TEXTS, *NUMBERS, "cpu", "memory", "maxWait", "simulated"})


class BadField(ValueError):
    """A field whose value makes no sense; the message says what would."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def training_job(form: Mapping[str, Any]) -> Json:
    """Return the job that the form describes, as a plain object.

    Raises:
        BadField: for the first field whose value makes no sense by itself.
    """
    unknown = sorted(set(form) - FIELDS)
    if unknown:
        raise BadField(unknown[0][:40], "is no field of the form")
    framework = _text(form, "framework") or "pytorch"
    if framework not in FRAMEWORKS:
        raise BadField("framework", f"use one of {', '.join(FRAMEWORKS)}")
    amounts: Json = {}
    for field, resource in (("cpu", names.CPU), ("memory", names.MEMORY)):
        if text := _text(form, field):
            amounts[resource] = _parsed(field, text, quantity.parse)
    sizes: dict[str, int | None] = {"replicas": _whole(form, "workers", 1, 1, MOST_WORKERS)}
    for field, size in (("fewest", "min"), ("most", "max")):
        if _text(form, field):
            sizes[size] = _whole(form, field, 1, 1, MOST_WORKERS)
    gpus = _whole(form, "gpus", 0, 0, 1024)
    wait = _text(form, "maxWait")
    return job_draft.training_job(
        Draft(
            name=_text(form, "name"),
            namespace=_text(form, "namespace") or "default",
            framework=framework,
            command=_command(form),
            image=_text(form, "image"),
            environment=_environment(form),
            sizes=sizes,
            requests=amounts,
            limits=amounts,
            devices={names.GPU: gpus} if gpus else {},
            spec={
                "queue": _text(form, "queue") or "default",
                "priorityClassName": _text(form, "priority"),
                "maxWait": wait and _parsed("maxWait", wait, duration.parse),
                "simulated": form.get("simulated") is True,
            },
        )
    )


def _command(form: Mapping[str, Any]) -> list[str]:
    text = _text(form, "command")
    if not text:
        raise BadField("command", "say what each pod runs, such as: python train.py")
    if "\n" in text:
        return ["sh", "-c", text]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadField("command", f"{error}; close the quotes") from None


def _environment(form: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for line in filter(None, map(str.strip, _text(form, "environment").splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.replace("_", "").replace(".", "").replace("-", "").isalnum():
            raise BadField("environment", f"{line[:80]!r} is not NAME=VALUE")
        found[name] = value
    return found


def _text(form: Mapping[str, Any], field: str) -> str:
    value = form.get(field, "")
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise BadField(field, "is not text")
    return str(value).strip()


def _whole(form: Mapping[str, Any], field: str, default: int, least: int, most: int) -> int:
    text = _text(form, field)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise BadField(field, f"is no whole number from {least} to {most}")
    return int(text)


def _parsed(field: str, text: str, parse: Any) -> str:
    try:
        parse(text)
    except ValueError as error:
        raise BadField(field, str(error)) from None
    return text


def form_of(tree: Any) -> tuple[Json, list[str]]:
    """Return a job as fields of the form, and the paths of what the form has no field for.

    A form of a job that came from the form gives that job again; anything else that stands in
    *tree* is kept by its author's YAML and only named here.
    """
    spec, meta = _at(tree, "spec"), _at(tree, "metadata")
    found: Json = {field: _word(meta, field) for field in ("name", "namespace")}
    found |= {field: _word(spec, field) for field in ("framework", "queue", "maxWait")}
    found["priority"] = _word(spec, "priorityClassName")
    if spec.get("simulated") is True:
        found["simulated"] = True
    roles = [one for one in _list(spec, "roles") if isinstance(one, Mapping)]
    worker = next((one for one in roles if one.get("name") == "worker"), roles[0] if roles else {})
    for field, name in (("workers", "replicas"), ("fewest", "min"), ("most", "max")):
        found[field] = _word(worker, name)
    runs = next((one for one in roles if one.get("name") == "launcher"), worker)
    found |= _container_of(worker) | {"command": _command_of(runs)}
    kept = {field: value for field, value in found.items() if value != ""}
    return kept, _beyond(tree, kept)


def _container_of(role: Mapping[str, Any]) -> Json:
    main = _main(role)
    limits = _at(main, "resources", "limits")
    image = _word(main, "image")
    lines = [
        f"{_word(one, 'name')}={_word(one, 'value')}"
        for one in _list(main, "env")
        if isinstance(one, Mapping) and "valueFrom" not in one
    ]
    return {
        "image": "" if image == NO_IMAGE else image,
        "gpus": _word(limits, names.GPU),
        "cpu": _word(limits, names.CPU),
        "memory": _word(limits, names.MEMORY),
        "environment": "\n".join(lines),
    }


def _command_of(role: Mapping[str, Any]) -> str:
    main = _main(role)
    parts = [str(one) for one in (*_list(main, "command"), *_list(main, "args"))]
    if len(parts) == 3 and parts[:2] == ["sh", "-c"] and "\n" in parts[2]:
        return parts[2]
    return shlex.join(parts)


def _main(role: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = _list(_at(role, "template", "spec"), "containers")
    first = containers[0] if containers else {}
    return first if isinstance(first, Mapping) else {}


def _beyond(tree: Any, form: Json) -> list[str]:
    """Return the paths of a tree that the job of the form does not have."""
    try:
        made = training_job(form)
    except BadField:
        return []
    return sorted(set(_paths(tree)) - set(_paths(made)))[:20]


def _paths(tree: Any, at: str = "", depth: int = 0) -> list[str]:
    if depth > 24:
        return [at]
    if isinstance(tree, Mapping):
        return [
            p for key, v in tree.items() for p in _paths(v, f"{at}.{key}".lstrip("."), depth + 1)
        ]
    if isinstance(tree, list):
        return [p for i, v in enumerate(tree) for p in _paths(v, f"{at}[{i}]", depth + 1)]
    return [at] if at else []


def _at(tree: Any, *path: str) -> Mapping[str, Any]:
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, Mapping) else {}


def _list(tree: Mapping[str, Any], name: str) -> list[Any]:
    found = tree.get(name)
    return found if isinstance(found, list) else []


def _word(tree: Mapping[str, Any], name: str) -> str:
    found = tree.get(name)
    return str(found) if isinstance(found, str | int | float) else ""
