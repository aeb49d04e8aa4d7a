"""A form as a script of the SDK, and such a script as a form again; nothing is executed."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.console.views.form import BadField

SIZES: Final = {"num_nodes": "workers", "gpus_per_node": "gpus", "min_nodes": "fewest",
                "max_nodes": "most"}  # fmt: skip
TEXTS: Final = ("framework", "image", "queue")
LONGEST: Final = 64 << 10


def script(form: Mapping[str, Any]) -> str:
    """Return a script that submits what the form describes.

    What the SDK has no word for (priority, longest wait, simulation) is said in a remark.
    """
    lines = ["from lockstep.sdk import Trainer, TrainerClient", "", "trainer = Trainer("]
    command = str(form.get("command", "")).strip()
    if "\n" in command:
        lines.append(f"    command={['sh', '-c', command]!r},")
    else:
        lines.append(f"    command={_split(command)!r},")
    for name in TEXTS:
        if said := str(form.get(name, "")).strip():
            lines.append(f"    {name}={said!r},")
    for name, field in SIZES.items():
        value = str(form.get(field, "")).strip()
        if value.isascii() and value.isdigit() and value not in ("", "0"):
            lines.append(f"    {name}={int(value)},")
    if resources := {k: str(form[k]) for k in ("cpu", "memory") if str(form.get(k, "")).strip()}:
        lines.append(f"    resources_per_node={resources!r},")
    if environment := _environment(form):
        lines.append(f"    env={environment!r},")
    lines += [")", f"with TrainerClient({_space(form)}) as client:"]
    named = f", name={str(form['name'])!r}" if form.get("name") else ""
    lines.append(f"    print(client.train(trainer{named}))")
    left = [field for field in ("priority", "maxWait", "simulated") if form.get(field)]
    if left:
        lines.append(f"# The SDK does not say: {', '.join(left)}; the YAML does.")
    return "\n".join(lines) + "\n"


def form_of(source: str) -> Json:
    """Return the form that a script with one ``Trainer(...)`` of literals describes.

    Raises:
        BadField: when there is none, or its arguments are no literals.
    """
    if len(source) > LONGEST:
        raise BadField("sdk", f"is {len(source)} characters long; at most {LONGEST}")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadField("sdk", f"is no Python: {error}") from None
    trainer, submit = _call(tree, "Trainer"), _call(tree, "train")
    if trainer is None:
        raise BadField("sdk", "has no Trainer(...)")
    given = _literals(trainer)
    form: Json = {"command": _command(given)}
    form |= {name: str(given[name]) for name in TEXTS if name in given}
    form |= {field: str(given[n]) for n, field in SIZES.items() if given.get(n) is not None}
    for name, value in _mapping(given, "resources_per_node").items():
        if name not in ("cpu", "memory"):
            raise BadField("sdk", f"resources_per_node: the form has no {name}; use the YAML")
        form[name] = str(value)
    if env := _mapping(given, "env"):
        form["environment"] = "\n".join(f"{name}={value}" for name, value in env.items())
    client = _call(tree, "TrainerClient")
    if client is not None and (space := _literals(client).get("namespace")):
        form["namespace"] = str(space)
    if submit is not None and (called := _literals(submit).get("name")):
        form["name"] = str(called)
    return form


def _space(form: Mapping[str, Any]) -> str:
    space = str(form.get("namespace", "")).strip()
    return f"namespace={space!r}" if space and space != "default" else ""


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _environment(form: Mapping[str, Any]) -> dict[str, str]:
    lines = str(form.get("environment", "")).splitlines()
    return {
        name.strip(): value for name, equals, value in (x.partition("=") for x in lines) if equals
    }


def _call(tree: ast.AST, name: str) -> ast.Call | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", getattr(called, "attr", "")) == name:
                return node
    return None


def _literals(call: ast.Call) -> Json:
    found: Json = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise BadField("sdk", "** is not followed; write the arguments out")
        try:
            found[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise BadField(
                "sdk", f"{keyword.arg} is no literal; the form follows texts, numbers and lists"
            ) from None
    return found


def _command(given: Json) -> str:
    parts = given.get("command", ())
    if not isinstance(parts, list | tuple) or not all(isinstance(one, str) for one in parts):
        raise BadField("sdk", "command: write a list of texts")
    if len(parts) == 3 and list(parts[:2]) == ["sh", "-c"]:
        return str(parts[2])
    return shlex.join(parts)


def _mapping(given: Json, name: str) -> Mapping[str, Any]:
    found = given.get(name, {})
    if not isinstance(found, Mapping):
        raise BadField("sdk", f"{name}: write a dictionary")
    return {str(key): value for key, value in found.items()}
