"""Templates of Argo that are pods: containers and scripts."""

from __future__ import annotations

import posixpath
from typing import Any, Final

from lockstep.compat.argo import expressions
from lockstep.compat.argo.expressions import quote
from lockstep.compat.translation import Refused

Json = dict[str, Any]

_RESULT: Final = "/lockstep-argo/result"
_INLINE: Final = frozenset({"sh", "bash", "ash", "dash", "zsh", "python", "python2", "python3"})
"""Programs that take their script behind ``-c``."""
_TEE: Final = (
    '{ "$0" "$@"; echo $? > /lockstep-argo/code; } | tee /lockstep-argo/result; '
    "exit $(cat /lockstep-argo/code)"
)


def pod_step(workflow: Json, source: Json, pod: Json, at: str, *, result: bool) -> Json:
    """Return the pod of a template; with *result* what it prints is a result, too.

    Raises:
        Refused: when it asks for something that is not honoured here.
    """
    main = _main(source, at, result=result)
    spec: Json = {**pod, "containers": [main]}
    volumes = [*(workflow.get("volumes") or []), *(source.get("volumes") or [])]
    if volumes:
        spec["volumes"] = volumes
    helpers = [*(source.get("initContainers") or [])]
    for one in source.get("sidecars") or []:
        if one.get("mirrorVolumeMounts"):
            raise Refused(f"{at}.sidecars.mirrorVolumeMounts", None, "name the mounts")
        helpers.append({**one, "restartPolicy": "Always"})
    if helpers:
        spec["initContainers"] = helpers
    metadata = {
        field: {**_of(workflow, "podMetadata", field), **_of(source, "metadata", field)}
        for field in ("labels", "annotations")
    }
    fetch, outputs, paths = _files(source, at)
    if result:
        outputs.append({"name": "result", "kind": "Text", "path": _RESULT, "optional": True})
        paths.append(_RESULT)
    template: Any = expressions.tree({"metadata": metadata, "spec": spec}, at)
    return {
        "template": template,
        "fetch": fetch,
        "outputs": outputs,
        "shared": _directories(paths),
    }


def _of(tree: Json, field: str, part: str) -> Json:
    return ((tree.get(field) or {}).get(part)) or {}


def _main(source: Json, at: str, *, result: bool) -> Json:
    if "script" in source:
        script = dict(source["script"])
        text = script.pop("source", "")
        command = script.get("command") or []
        program = posixpath.basename(command[0]) if command else ""
        if program.rstrip("0123456789.") not in {one.rstrip("0123456789.") for one in _INLINE}:
            known = ", ".join(sorted(_INLINE))
            raise Refused(f"{at}.script.command", command, f"scripts run in one of {known}")
        main = {**script, "command": [*command, "-c", text], "args": []}
    else:
        main = dict(source["container"])
    main["name"] = "main"
    if result:
        if not main.get("command"):
            raise Refused(
                f"{at}.container.command", None, "a step whose output is used needs its command"
            )
        words = [*main["command"], *(main.get("args") or [])]
        main |= {"command": ["sh", "-c", _TEE], "args": words}
    return main


def _files(source: Json, at: str) -> tuple[list[Json], list[Json], list[str]]:
    fetch: list[Json] = []
    outputs: list[Json] = []
    paths: list[str] = []
    for one in (source.get("inputs") or {}).get("artifacts") or []:
        if not one.get("path"):
            raise Refused(f"{at}.inputs.artifacts.{one['name']}.path", None, "name a path")
        paths.append(one["path"])
        found: Json = {
            "artifact": "${{ inputs[" + quote(one["name"]) + "] }}",
            "path": expressions.literal(one["path"]),
        }
        fetch.append(found | ({"optional": True} if one.get("optional") else {}))
    given = source.get("outputs") or {}
    for one in given.get("parameters") or []:
        where = f"{at}.outputs.parameters.{one['name']}"
        value = one.get("valueFrom") or {}
        if "path" not in value:
            raise Refused(where, None, "needs valueFrom.path")
        paths.append(value["path"])
        made: Json = {"name": one["name"], "kind": "Text", "path": value["path"]}
        if "default" in value:
            made |= {"default": str(value["default"]), "optional": True}
        outputs.append(made)
    for one in given.get("artifacts") or []:
        paths.append(one["path"])
        made = {"name": one["name"], "kind": "Artifact", "path": one["path"]}
        s3 = one.get("s3")
        if s3:
            if not s3.get("bucket"):
                raise Refused(f"{at}.outputs.artifacts.{one['name']}.s3", None, "name the bucket")
            uri = f"s3://{s3['bucket']}/{s3['key']}"
            made["uri"] = expressions.text(uri, f"{at}.outputs.artifacts.{one['name']}.s3.key")
        outputs.append(made | ({"optional": True} if one.get("optional") else {}))
    return fetch, outputs, paths


def _directories(paths: list[str]) -> list[str]:
    """Return the directories that hold *paths*, none of them within another."""
    found = sorted({posixpath.dirname(path.rstrip("/")) for path in paths})
    return [
        one
        for one in found
        if not any(one != other and one.startswith(f"{other.rstrip('/')}/") for other in found)
    ]
