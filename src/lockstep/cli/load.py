"""Reading manifests, and checking them before anything is sent.

The checks are the server's own: the CRD's schema (or the built-in kind's) compiled by
``lockstep.apiserver.schema``, plus the job controller's rules across fields. What
passes here is refused by the server only for what depends on its state.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from lockstep.api import crd
from lockstep.api.names import API_VERSION, GROUP
from lockstep.api.presentation import PRESENTATIONS
from lockstep.api.queue import Queue
from lockstep.api.queue_rules import flaws
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.cli.failure import BadInput

UNCHECKED = "<nil>"
"""Where a server says that rules were left out because of the other causes."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest, and where it was read."""

    obj: Json
    origin: str


def documents(source: Path) -> list[Document]:
    """Return the objects in the YAML or JSON file *source* (``-``: standard input), Lists unpacked.

    Raises:
        BadInput: when it cannot be read, naming the file and the line.
    """
    name = "standard input" if str(source) == "-" else str(source)
    found: list[Document] = []
    for i, tree in enumerate(_parse(_read(source, name), name), 1):
        if tree is None:
            continue
        origin = f"{name}, document {i}"
        items = tree.get("items", []) if _is_list(tree) else [tree]
        found += [Document(_object(item, origin), origin) for item in items]
    if not found:
        raise BadInput(f"{name}: holds no object", "write apiVersion, kind, metadata and spec")
    return found


def check(document: Document) -> None:
    """Check one object against its schema and our rules.

    Raises:
        BadInput: naming every field that is wrong, what was given, and what is allowed.
    """
    found = problems(document.obj)
    if found:
        obj = document.obj
        who = _named(obj)
        lines = "\n".join(f"  {line}" for line in found)
        raise BadInput(
            f"{document.origin}: {who} is not valid:\n{lines}",
            "nothing was sent; mend the fields above and try again",
        )


def _named(obj: Json) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{obj['kind']} {name}".strip()


def problems(obj: Json) -> list[str]:
    """Return what is wrong with *obj* by itself, a line each; nothing when it can be sent."""
    if not isinstance(metadata := obj.get("metadata") or {}, dict):
        return [f"metadata: given {metadata!r}; write an object, with a name in it"]
    schema = _schema(obj["apiVersion"], obj["kind"])
    if schema is None:
        return _unknown_kind(obj)
    if misfit := schema.misfit(obj):
        return [_unread(misfit, misfit.at)]
    found = [
        f"{path}: unknown field{_meant(obj['kind'], path)}" for path in schema.unknown_fields(obj)
    ]
    causes = schema.validate(obj)
    ours = [] if found or obj["kind"] != "TrainingJob" else _job_problems(obj)
    # Where both blame a field, ours tells the values too; a CRD's rule cannot.
    told = {problem.field for problem in ours} | {UNCHECKED}
    found += [_told(cause, obj) for cause in causes if cause.field not in told]
    found += map(str, ours)
    if not found and obj["kind"] == "Queue":
        found = [f"spec: {flaw}" for flaw in flaws(msgspec.convert(obj, Queue).spec)]
    if not found and obj["kind"] == "TrainingJob":
        found = _template_problems(obj)
    return found


def _told(cause: Any, obj: Json) -> str:
    """Return a cause; of a value of another type the API names the type, and we the value."""
    wanted = _TYPED.search(cause.message)
    if wanted is None:
        return str(cause)
    given: Any = obj
    for step in re.findall(r"[^.\[\]]+", cause.field):
        try:
            given = given[int(step)] if isinstance(given, list) else given[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return str(cause)
    article = "an" if wanted[1][0] in "aio" else "a"
    return f"{cause.field}: given {json.dumps(given)}; write {article} {wanted[1]}"


_TYPED = re.compile(r"in body must be of type (\w+)")


def _job_problems(obj: Json) -> list[Problem]:
    from lockstep.jobs import validate

    try:
        job = msgspec.convert(obj, TrainingJob)
    except msgspec.ValidationError:
        return []  # the schema says so, with the field
    return validate.problems(job)


def _template_problems(obj: Json) -> list[str]:
    schema = _builtin("io.k8s.api.core.v1.PodTemplateSpec")
    found: list[str] = []
    for i, role in enumerate(obj["spec"]["roles"]):
        at = f"spec.roles[{i}].template"
        if misfit := schema.misfit(role["template"]):
            found.append(_unread(misfit, f"{at}.{misfit.at}" if misfit.at else at))
            continue
        found += [f"{at}.{path}: unknown field" for path in schema.unknown_fields(role["template"])]
        found += [f"{at}.{cause}" for cause in schema.validate(role["template"])]
    return found


def _unread(misfit: Any, at: str) -> str:
    return f"{at}: given {json.dumps(misfit.given)}; write {misfit.wanted}"


@cache
def _builtin(name: str) -> Any:
    from lockstep.apiserver.schema import Schema

    return Schema.builtin(name)


@cache
def _schema(api_version: str, kind: str) -> Any:
    """Return the compiled schema of a kind, or None where we do not know the kind."""
    from lockstep.apiserver.builtin.registry import BUILTINS
    from lockstep.apiserver.schema import Schema

    if api_version == API_VERSION:
        try:
            return Schema.parse(crd.schema(kind))
        except KeyError:
            return None
    for known in BUILTINS:
        version = f"{known.group}/{known.version}" if known.group else known.version
        if (version, known.kind) == (api_version, kind):
            return _builtin(known.schema_name)
    return None


def _unknown_kind(obj: Json) -> list[str]:
    ours = [shown.resource.kind for shown in PRESENTATIONS]
    if obj["kind"] in ours:
        return [f"apiVersion: given {obj['apiVersion']!r}; {obj['kind']} is in {API_VERSION}"]
    if obj["apiVersion"].startswith(f"{GROUP}/"):
        return [f"kind: given {obj['kind']!r}; allowed are {', '.join(ours)}"]
    return []  # a custom resource of another project, which only the server knows


def _meant(kind: str, path: str) -> str:
    """Return a suggestion when the last step of *path* is close to a field there."""
    node: Any = crd.schema(kind) if kind in {s.resource.kind for s in PRESENTATIONS} else {}
    *parents, last = path.split(".")
    for step in parents:
        node = node.get("properties", {}).get(re.sub(r"\[.*", "", step), {})
        node = node.get("items", node) if "[" in step else node
    close = difflib.get_close_matches(last, node.get("properties", {}), 1)
    return f"; did you mean {close[0]}?" if close else ""


def _read(source: Path, name: str) -> str:
    try:
        return sys.stdin.read() if str(source) == "-" else source.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise BadInput(f"{name}: {reason}", "name a YAML or JSON file, or - for stdin") from None


def _parse(text: str, name: str) -> list[Any]:
    if text.lstrip()[:1] in ("{", "["):  # JSON is YAML, and read far faster as what it is
        with contextlib.suppress(msgspec.DecodeError):
            return [msgspec.json.decode(text)]
    import yaml

    try:
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        detail = getattr(error, "problem", None) or str(error)
        raise BadInput(f"{name}{where}: not YAML: {detail}", "mend the file") from None


def _is_list(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get("kind") == "List" and "items" in tree


def _object(tree: Any, origin: str) -> Json:
    if not isinstance(tree, dict):
        raise BadInput(f"{origin}: is a {type(tree).__name__}, not an object")
    for field in ("apiVersion", "kind"):
        if not isinstance(tree.get(field), str):
            raise BadInput(
                f"{origin}: {field} is missing",
                f"write {field}: ... as in apiVersion: {API_VERSION}",
            )
    return tree
