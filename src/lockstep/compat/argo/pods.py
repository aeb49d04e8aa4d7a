"""Templates of Argo that are pods: containers, scripts and sets of containers."""

from __future__ import annotations

import posixpath
import shlex
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.argo import container_sets, expressions
from lockstep.compat.argo.commands import words_of
from lockstep.compat.argo.expressions import quote
from lockstep.compat.argo.fields import number, stored
from lockstep.compat.argo.runs import claim_volumes
from lockstep.compat.translation import Refused

_RESULT: Final = "/lockstep-argo/result"
_COPIES: Final = "/lockstep-argo/copies"
_INLINE: Final = {
    **dict.fromkeys(("sh", "bash", "ash", "dash", "zsh", "python"), "-c"),
    **dict.fromkeys(("node", "perl", "ruby"), "-e"),
}
"""Programs that take their script in an argument, and behind which."""
_TEE: Final = (
    '{ "$0" "$@"; echo $? > /lockstep-argo/code; } | tee /lockstep-argo/result; '
    "code=$(cat /lockstep-argo/code)"
)
_SYSTEM: Final = frozenset(
    {"/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys"}
    | {"/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/sbin", "/var"}
)
"""Directories that images have things in, which a volume in their place would hide."""
_EMPTY: Final = frozenset({"/mnt", "/srv", "/tmp"})  # noqa: S108  of the container, not of here
"""Directories that images have nothing in: a volume may be in their place."""


def pod_step(workflow: Json, source: Json, pod: Json, at: str, *, result: bool) -> Json:
    """Return the pod of a template; with *result* what it prints is a result, too.

    Raises:
        Refused: when it asks for something that is not honoured here.
    """
    daemon = bool(source.get("daemon"))
    result = result and not daemon
    containers, main = _containers(source, at)
    fetch, outputs, paths, copies = _files(source, at, _mounted(main))
    if daemon and (outputs or copies):
        raise Refused(f"{at}.outputs", None, "a daemon has none but its ip")
    if result or copies:
        containers[containers.index(main)] = _wrapped(main, copies, at, result=result)
    spec: Json = {**pod, "containers": containers}
    volumes = [
        *(workflow.get("volumes") or []),
        *claim_volumes(workflow),
        *(source.get("volumes") or []),
        *(container_sets.volumes(source) if "containerSet" in source else []),
    ]
    if volumes:
        spec["volumes"] = volumes
    helpers = [*(source.get("initContainers") or [])]
    for one in source.get("sidecars") or []:
        if one.get("mirrorVolumeMounts"):
            raise Refused(f"{at}.sidecars.mirrorVolumeMounts", None, "name the mounts")
        helpers.append({**one, "restartPolicy": "Always"})
    if helpers:
        spec["initContainers"] = helpers
    if result:
        outputs.append({"name": "result", "kind": "Text", "path": _RESULT, "optional": True})
    if result or copies:
        paths.append(_RESULT)
    template: Any = expressions.tree({"metadata": _metadata(workflow, source), "spec": spec}, at)
    found: Json = {
        "template": template,
        "fetch": fetch,
        "outputs": outputs,
        "shared": _directories(paths),
    }
    patches = [one["podSpecPatch"] for one in (workflow, source) if one.get("podSpecPatch")]
    if patches:
        found["patch"] = [expressions.text(one, f"{at}.podSpecPatch") for one in patches]
    return found | ({"daemon": True} if daemon else {})


def _metadata(workflow: Json, source: Json) -> Json:
    found = {
        field: {**_of(workflow, "podMetadata", field), **_of(source, "metadata", field)}
        for field in ("labels", "annotations")
    }
    found["annotations"] |= source.get("annotations") or {}
    return found


def _of(tree: Json, field: str, part: str) -> Json:
    return ((tree.get(field) or {}).get(part)) or {}


def _containers(source: Json, at: str) -> tuple[list[Json], Json]:
    """Return the containers of a template, and which of them is its main one."""
    if "containerSet" in source:
        made = container_sets.containers(source, at)
        main = next((one for one in made if one["name"] == "main"), made[-1])
        return made, main
    main = _script(source["script"], at) if "script" in source else dict(source["container"])
    main["name"] = "main"
    if source.get("podResources"):
        main.setdefault("resources", source["podResources"])
    return [main], main


def _script(given: Json, at: str) -> Json:
    script = dict(given)
    text = script.pop("source", "")
    command = script.get("command") or []
    program = posixpath.basename(command[0]).rstrip("0123456789.") if command else ""
    if program not in _INLINE:
        known = ", ".join(sorted(_INLINE))
        raise Refused(f"{at}.script.command", command, f"scripts run in one of {known}")
    return {**script, "command": [*command, _INLINE[program], text], "args": []}


def _wrapped(main: Json, copies: dict[str, str], at: str, *, result: bool) -> Json:
    """Return *main* in a shell that keeps what it prints, and copies of what it leaves."""
    lines = [_TEE if result else '"$0" "$@"; code=$?']
    for path, copy in copies.items():
        here, there = shlex.quote(path), shlex.quote(copy)
        lines.append(f"mkdir -p {shlex.quote(posixpath.dirname(copy))}")
        lines.append(f"if [ -e {here} ]; then cp -rL {here} {there}; fi")
    command = ["sh", "-c", "\n".join([*lines, "exit $code"])]
    return {**main, "command": command, "args": words_of(main, at)}


def _mounted(main: Json) -> list[str]:
    return [str(one["mountPath"]).rstrip("/") for one in main.get("volumeMounts") or []]


def _within(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _files(
    source: Json, at: str, mounted: list[str]
) -> tuple[list[Json], list[Json], list[str], dict[str, str]]:
    """Return what is fetched and kept, the paths that need a volume, and those copied to one."""
    fetch, paths = _fetched(source, at, mounted)
    outputs: list[Json] = []
    copies: dict[str, str] = {}
    given = source.get("outputs") or {}
    for one in given.get("parameters") or []:
        where = f"{at}.outputs.parameters.{one['name']}"
        value = one.get("valueFrom") or {}
        if "path" not in value:
            raise Refused(where, None, "needs valueFrom.path")
        made: Json = {"name": one["name"], "kind": "Text"}
        if "default" in value:
            made |= {"default": str(value["default"]), "optional": True}
        outputs.append(made | _placed(value["path"], where, mounted, paths, copies))
    for one in given.get("artifacts") or []:
        where = f"{at}.outputs.artifacts.{one['name']}"
        if "artifactGC" in one:
            raise Refused(f"{where}.artifactGC", None, "artefacts stay; leave it out")
        made = {"name": expressions.kept(one["name"]), "kind": "Artifact"}
        for store in ("artifactory", "azure", "gcs", "git", "hdfs", "http", "oss", "plugin"):
            if store in one:
                raise Refused(f"{where}.{store}", None, "artefacts go to S3; see spec.root")
        if one.get("s3"):
            made["uri"] = stored(one["s3"], f"{where}.s3")
        made |= {"optional": True} if one.get("optional") else {}
        outputs.append(made | _placed(one["path"], where, mounted, paths, copies))
    return fetch, outputs, paths, copies


def _fetched(source: Json, at: str, mounted: list[str]) -> tuple[list[Json], list[str]]:
    fetch: list[Json] = []
    paths: list[str] = []
    for one in (source.get("inputs") or {}).get("artifacts") or []:
        if not one.get("path"):
            raise Refused(f"{at}.inputs.artifacts.{one['name']}.path", None, "name a path")
        path = one["path"].rstrip("/")
        if not _within(path, mounted) and posixpath.dirname(path) not in _SYSTEM:
            paths.append(path)
        found: Json = {
            "artifact": "${{ inputs[" + quote(one["name"]) + "] }}",
            "path": expressions.literal(path),
        }
        found |= {"optional": True} if one.get("optional") else {}
        if "mode" in one:
            found["mode"] = number(one["mode"], f"{at}.inputs.artifacts.{one['name']}.mode")
            found |= {"recursive": True} if one.get("recurseMode") else {}
        fetch.append(found)
    return fetch, paths


def _placed(
    path: str, at: str, mounted: list[str], paths: list[str], copies: dict[str, str]
) -> Json:
    """Return where an output is read: where it is left, or where a copy of it will be."""
    path = path.rstrip("/") or "/"
    if _within(path, mounted):
        return {"path": path}
    if tops := [one for one in _EMPTY if _within(path, [one])]:
        # The whole of it, so that a step makes directories in it as it would in its image.
        paths.append(f"{tops[0]}/all of it")
        return {"path": path}
    if path not in _SYSTEM and posixpath.dirname(path) not in _SYSTEM:
        paths.append(path)
        return {"path": path}
    if "{{" in path or path == "/":
        raise Refused(f"{at}.path", path, "must be constant, and not the root")
    copies.setdefault(path, f"{_COPIES}/{len(copies)}/{posixpath.basename(path)}")
    return {"path": copies[path]}


def _directories(paths: list[str]) -> list[str]:
    """Return the directories that hold *paths*, none of them within another."""
    found = sorted({posixpath.dirname(path.rstrip("/")) for path in paths})
    return [
        one
        for one in found
        if not any(one != other and one.startswith(f"{other.rstrip('/')}/") for other in found)
    ]
