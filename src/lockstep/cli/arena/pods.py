"""Pod templates out of Arena's flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.cli.arena.parse import Values
from lockstep.cli.failure import BadInput

GIT_IMAGE: Final = "registry.k8s.io/git-sync/git-sync:v3.6.5"
RSYNC_IMAGE: Final = "registry.cn-zhangjiakou.aliyuncs.com/acs/rsync:v3.1.0-aliyun"
"""The one that Arena takes by default."""
LOGS: Final = "/arena_logs/training_logs"
"""Where logs for TensorBoard lie on a node, unless they go to a claim."""
RDMA: Final = "rdma/hca"
"""What the shared RDMA device plugin calls its NICs."""
LARGEST_FILE: Final = 1 << 19
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")


def pair(flag: str, text: str) -> tuple[str, str]:
    """Return a K=V as two.

    Raises:
        BadInput: when it is none.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadInput(f"--{flag}: {text!r} is not KEY=VALUE", f"write --{flag} KEY=VALUE")
    return name, value


def pairs(flag: str, texts: list[str]) -> dict[str, str]:
    """Return several K=V by their keys."""
    return dict(pair(flag, text) for text in texts)


def template(given: Values, **own: Any) -> Json:
    """Return the pod template that the flags describe; *own* are this role's in their place.

    Raises:
        BadInput: for a value that makes no sense.
    """
    said = {**given, **{name: value for name, value in own.items() if value}}
    main: Json = {"name": "main", "image": said["image"]}
    if said.get("image_pull_policy"):
        main["imagePullPolicy"] = said["image_pull_policy"]
    if said.get("command"):
        main["command"] = [_shell(said), "-c", said["command"]]
        main["workingDir"] = said["working_dir"]
    main["env"] = [{"name": k, "value": v} for k, v in _environment(given, said).items()]
    if resources := _resources(said):
        main["resources"] = resources
    if said.get("rdma"):
        main["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    spec: Json = {"containers": [main]}
    spec |= {field: True for field in ("hostNetwork", "hostIPC", "hostPID") if said.get(field)}
    if nodes := pairs("selector", said.get("selector") or []):
        spec["nodeSelector"] = nodes
    if tolerations := [_toleration(one) for one in said.get("toleration") or []]:
        spec["tolerations"] = tolerations
    if secrets := said.get("image_pull_secret"):
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    _volumes(spec, said)
    _sync(spec, said)
    meta = {
        "labels": pairs("label", given.get("label") or []),
        "annotations": pairs("annotation", said.get("annotation") or []),
    }
    kept = {name: value for name, value in meta.items() if value}
    return {"metadata": kept, "spec": spec} if kept else {"spec": spec}


def _shell(said: Values) -> str:
    shell = said.get("shell", "sh")
    if shell not in ("sh", "bash"):
        raise BadInput(f"--shell: {shell!r} is no shell that is known", "write sh or bash")
    return str(shell)


def _environment(given: Values, said: Values) -> dict[str, str]:
    names = {"workers": "workers", "gpus": "gpus"}
    names |= {"minWorkers": "min_workers", "maxWorkers": "max_workers"}
    counted = {name: str(given[key]) for name, key in names.items() if key in given}
    return counted | pairs("env", said.get("env") or [])


def _resources(said: Values) -> Json:
    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}
    for name in ("cpu", "memory"):
        if amount := said.get(name):
            requests[name] = amount
            limits[name] = amount
        if most := said.get(f"{name}_limit"):
            limits[name] = most
    if said.get("gpus"):
        limits["nvidia.com/gpu"] = said["gpus"]
    if said.get("rdma"):
        limits[RDMA] = 1
    limits |= pairs("device", said.get("device") or [])
    found = {"limits": limits, "requests": requests}
    return {name: amounts for name, amounts in found.items() if amounts}


def _toleration(text: str) -> Json:
    """Return one of ``key``, ``key=value``, ``key=value:effect,operator`` and ``all``."""
    if text == "all":
        return {"operator": "Exists"}
    rest, _, operator = text.partition(",")
    rest, _, effect = rest.partition(":")
    name, equals, value = rest.partition("=")
    if effect not in _EFFECTS or operator not in ("", "Exists", "Equal"):
        raise BadInput(
            f"--toleration: {text!r} is not KEY=VALUE:EFFECT,OPERATOR",
            f"effects are {', '.join(_EFFECTS[:-1])}; operators Exists and Equal",
        )
    if not operator:
        operator = "Equal" if equals else "Exists"
    found = {"key": name, "operator": operator, "value": value, "effect": effect}
    return {field: one for field, one in found.items() if one}


def _mount(spec: Json, name: str, source: Json, path: str, part: str = "") -> None:
    spec.setdefault("volumes", []).append({"name": name, **source})
    mount = {"name": name, "mountPath": path, **({"subPath": part} if part else {})}
    spec["containers"][0].setdefault("volumeMounts", []).append(mount)


def _volumes(spec: Json, said: Values) -> None:
    for i, text in enumerate(said.get("data") or []):
        claim, colon, place = text.partition(":")
        path, _, part = place.partition(":")
        if not claim or not colon or not path.startswith("/"):
            raise BadInput(f"--data: {text!r} is not CLAIM:PATH", "write --data CLAIM:/PATH")
        source = {"persistentVolumeClaim": {"claimName": claim}}
        _mount(spec, f"data-{i}", source, path, part)
    for i, text in enumerate(said.get("data_dir") or []):
        host, _, path = text.partition(":")
        if not host.startswith("/"):
            raise BadInput(f"--data-dir: {text!r} is no path", "write --data-dir /PATH")
        _mount(spec, f"data-dir-{i}", {"hostPath": {"path": host}}, path or host)
    if size := said.get("share_memory"):
        source = {"emptyDir": {"medium": "Memory", "sizeLimit": size}}
        _mount(spec, "dshm", source, "/dev/shm")  # noqa: S108
    if said.get("tensorboard") and not _on_a_claim(said):
        where = {"path": LOGS, "type": "DirectoryOrCreate"}
        _mount(spec, "training-logs", {"hostPath": where}, said["logdir"])
    for i, text in enumerate(said.get("config_file") or []):
        path = config_file(text)[1]
        source = {"configMap": {"name": f"{said['name']}-files"}}
        _mount(spec, f"config-{i}", source, path, str(i))


def _on_a_claim(said: Values) -> bool:
    """Say whether logs go to a claim that is mounted anyway."""
    paths = [text.split(":")[1] for text in said.get("data") or []]
    return any(f"{said['logdir']}/".startswith(f"{path.rstrip('/')}/") for path in paths)


def config_file(text: str) -> tuple[Path, str]:
    """Return which file is to be where.

    Raises:
        BadInput: when that is not said.
    """
    file, _, path = text.partition(":")
    if not file or not (path or file).startswith("/"):
        raise BadInput(f"--config-file: {text!r} is not FILE:PATH", "write FILE:/PATH")
    return Path(file), path or file


def config_data(texts: list[str]) -> dict[str, str]:
    """Return the contents of files, by the place of each in *texts*.

    Raises:
        BadInput: when one cannot be read.
    """
    found: dict[str, str] = {}
    for i, text in enumerate(texts):
        file = config_file(text)[0]
        try:
            found[str(i)] = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise BadInput(f"--config-file: {file}: {reason}", "name a file of text") from None
    if sum(map(len, found.values())) > LARGEST_FILE:
        limit = f"{LARGEST_FILE >> 10} KiB"
        raise BadInput(f"--config-file: they are larger than {limit}", "put them on a volume")
    return found


def _sync(spec: Json, said: Values) -> None:
    """Fetch code before the main container starts, into ``code`` of its working directory."""
    mode, source = said.get("sync_mode"), said.get("sync_source")
    if not mode:
        return
    if mode not in ("git", "rsync") or not source:
        raise BadInput(
            f"--sync-mode: {mode!r} with source {source!r}", "git or rsync, and a source"
        )
    name = str(source).rstrip("/").rpartition("/")[2].removesuffix(".git")
    given = pairs("env", said.get("env") or [])
    env = {k: v for k, v in given.items() if k.startswith("GIT_SYNC_")}
    fetch: Json = {"name": "init-code", "image": said.get("sync_image") or GIT_IMAGE}
    if mode == "git":
        env |= {"GIT_SYNC_REPO": source, "GIT_SYNC_DEST": name, "GIT_SYNC_ROOT": "/code"}
        env["GIT_SYNC_ONE_TIME"] = "true"
    else:
        fetch["image"] = said.get("sync_image") or RSYNC_IMAGE
        fetch["command"] = ["rsync", "-avP", source, "/code"]
    fetch["env"] = [{"name": k, "value": v} for k, v in env.items()]
    fetch["volumeMounts"] = [{"name": "code-sync", "mountPath": "/code"}]
    spec["initContainers"] = [fetch]
    _mount(spec, "code-sync", {"emptyDir": {}}, f"{said['working_dir'].rstrip('/')}/code")
