"""The verbs of ``arena serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lockstep.api.core import PODS
from lockstep.api.wire import Json
from lockstep.cli.arena import pods, serving
from lockstep.cli.arena.flags import Flag
from lockstep.cli.arena.parse import HELP, Values, parse
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.output import Format, encode
from lockstep.compat.kserve.objects import INFERENCE_SERVICES
from lockstep.kube.errors import NotFound

Run = Callable[..., None]

SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
_COMMON: Final = (
    Flag("type", short="T", becomes="(a check)"),
    Flag("version", becomes="(which version)"),
    Flag("all-namespaces", "switch", short="A", becomes="(where)"),
    Flag("output", default="wide", short="o", becomes="(how it is printed)"),
    Flag("tail", "number", short="t", becomes="(how much)"),
    Flag("instance", short="i", becomes="(which pod)"),
    Flag("container", short="c", becomes="(which container)"),
)
_VERBS: Final = ("list", "ls", "get", "logs", "log", "attach", "delete", "del")


def help_() -> str:
    """Return how it is used."""
    return (
        "  arena serve TYPE --name NAME ... 'COMMAND'    "
        f"TYPE: {', '.join(serving.TYPES)}\n"
        "  arena serve list | get NAME | logs NAME | attach NAME | delete NAME...\n"
        "  arena serve update TYPE --name NAME ...       flags that are given change it\n"
        "  arena serve traffic-split --name NAME --version-weight V1:90 --version-weight V2:10\n\n"
        "  arena serve TYPE --help lists the flags."
    )


def serve(args: list[str], lockstep: Run, target: Callable[[Values], Any]) -> None:
    """Do what *args*, behind ``arena serve``, say.

    *lockstep* runs one of Lockstep's own commands, *target* says of which cluster.

    Raises:
        BadInput: for a command line that makes no sense.
        CommandFailed: when it could not be done.
    """
    if not args or args[0] in HELP:
        print(help_())
        return
    verb, *rest = args
    kind = serving.NAMES.get(verb, verb)
    if kind in serving.TYPES:
        _submit(kind, rest, target)
    elif verb == "update":
        _update(rest, target)
    elif verb == "traffic-split":
        values, _ = parse(rest, serving.SPLIT)
        if not values["name"] or not values["version_weight"]:
            raise BadInput("--name and --version-weight must be set", "--version-weight V1:90")
        weights = values["version_weight"]
        _change(target(values), values["name"], lambda there: serving.split(there, weights))
    elif verb in _VERBS:
        _show(verb, rest, lockstep, target)
    else:
        known = (*serving.TYPES, "update", "traffic-split", *_VERBS)
        raise BadInput(f"unknown command: arena serve {verb}", f"there are: {', '.join(known)}")


def _show(verb: str, args: list[str], lockstep: Run, target: Callable[[Values], Any]) -> None:
    values, names = parse(args, _COMMON)
    if verb in ("list", "ls"):
        lockstep(values, "serve", "list", *(["-A"] * bool(values["all_namespaces"])))
        return
    if not names:
        usage = f"arena serve {verb} NAME"
        raise BadInput(f"arena serve {verb} needs the name of a service", usage)
    if verb in ("delete", "del"):
        for name in names:
            _delete(target(values), name)
        return
    if verb == "get":
        lockstep(values, "serve", "describe", names[0])
        return
    if verb == "attach":
        pod = values["instance"] or _first_pod(target(values), names[0])
        lockstep(values, "exec", f"pod/{pod}", "-i", "--", *(names[1:] or ["sh"]))
        return
    tail = [f"--tail={values['tail']}"] if values["tail"] is not None else []
    if values["instance"]:
        lockstep(values, "logs", f"pod/{values['instance']}", *tail)
        return
    lockstep(values, "serve", "logs", names[0], *tail)


def _first_pod(target: Any, service: str) -> str:
    found: list[str] = []

    async def look(session: Session) -> None:
        chosen = f"{SERVICE_LABEL}={service}"
        listing = await session.client.list(PODS, session.namespace, label_selector=chosen)
        found.extend(sorted(pod.metadata.name for pod in listing.items))

    run(target, look)
    if not found:
        raise CommandFailed(f"service {service} has no pods now", "arena serve get shows why")
    return found[0]


def _delete(target: Any, name: str) -> None:
    async def send(session: Session) -> None:
        try:
            await session.client.delete(
                INFERENCE_SERVICES, name, session.namespace, propagation="Background"
            )
        except NotFound:
            raise CommandFailed(f"there is no service {name}", "arena serve list") from None
        print(f"The serving job {name} has been deleted successfully")

    run(target, send)


def _submit(kind: str, args: list[str], target: Callable[[Values], Any]) -> None:
    values = serving.parsed(kind, args)
    made = serving.service(kind, values)
    if values["dry_run"]:
        print(encode(made, Format.YAML), end="")
        return
    _create(target(values), made)
    print(f"The serving job {values['name']} has been submitted successfully")
    print(f"You can run `arena serve get {values['name']}` to check the job status")


def _create(target: Any, made: Json) -> None:
    from lockstep.api.wire import to_builtins

    async def send(session: Session) -> None:
        name = made["metadata"]["name"]
        there = await session.find(INFERENCE_SERVICES, name)
        if there is None:
            await session.client.create(INFERENCE_SERVICES, made, session.namespace)
            return
        old = {"spec": to_builtins(there.spec)}
        if serving.version_of(made["spec"]["predictor"]) == serving.version_of(
            old["spec"]["predictor"]
        ):
            raise CommandFailed(
                f"the service {name} is there already",
                "`arena serve update` changes it; --version=V adds a version",
            )
        patch = {"spec": serving.beside(old, made)}
        await session.client.patch(INFERENCE_SERVICES, name, patch, session.namespace)

    run(target, send)


def _change(target: Any, name: str, change: Callable[[Json], Json]) -> None:
    from lockstep.api.wire import to_builtins

    async def send(session: Session) -> None:
        there = await session.get(INFERENCE_SERVICES, name, "service", "arena serve list")
        patch = {"spec": change({"spec": to_builtins(there.spec)})}
        await session.client.patch(INFERENCE_SERVICES, name, patch, session.namespace)
        print(f"inferenceservice/{name} is changed")

    run(target, send)


def _update(args: list[str], target: Callable[[Values], Any]) -> None:
    kind = serving.NAMES.get(args[0], args[0]) if args else ""
    if kind not in serving.TYPES:
        raise BadInput("arena serve update needs a type", f"one of: {', '.join(serving.TYPES)}")
    values, command = parse(args[1:], serving.TYPES[kind])
    if not values["name"]:
        raise BadInput("--name must be set", "write --name=NAME")
    stated = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in args[1:]}
    _change(
        target(values),
        values["name"],
        lambda there: _updated(there, values, stated, " ".join(command)),
    )


_OF_MODEL: Final = {
    "storage_uri": "storageUri",
    "runtime_version": "runtimeVersion",
    "runtime": "runtime",
}
_OF_PREDICTOR: Final = {
    "canary_traffic_percent": "canaryTrafficPercent",
    "min_replicas": "minReplicas",
    "max_replicas": "maxReplicas",
    "scale_target": "scaleTarget",
    "scale_metric": "scaleMetric",
}
"""Fields of a predictor by the flags that set them."""


def _updated(there: Json, given: Values, stated: set[str], command: str) -> Json:
    """Return the spec of a service with the flags that were *stated* laid over it."""
    version = given.get("version") or ""
    spec = there["spec"]
    predictors = [spec["predictor"], *(one["predictor"] for one in spec.get("canary") or [])]
    found = [one for one in predictors if not version or serving.version_of(one) == version]
    if not found:
        raise BadInput(f"there is no version {version!r}", "arena serve get NAME names them")
    one = found[0]
    container = (one.get("containers") or [one.get("model") or {}])[0]
    if "image" in stated:
        container["image"] = given["image"]
    if command:
        container["command"] = [given["shell"], "-c", command]
    if "replicas" in stated:
        one["minReplicas"] = given["replicas"]
        one["maxReplicas"] = max(1, given["replicas"])
    for flag, name in (("cpu", "cpu"), ("memory", "memory"), ("gpus", "nvidia.com/gpu")):
        if flag in stated:
            parts = container.setdefault("resources", {})
            parts.setdefault("limits", {})[name] = given[flag]
            if flag != "gpus":
                parts.setdefault("requests", {})[name] = given[flag]
    if "env" in stated or "e" in stated:
        new = pods.pairs("env", given["env"])
        kept = [e for e in container.get("env") or [] if e["name"] not in new]
        container["env"] = [*kept, *({"name": k, "value": v} for k, v in new.items())]
    container |= {name: given[flag] for flag, name in _OF_MODEL.items() if flag in stated}
    one |= {name: given[flag] for flag, name in _OF_PREDICTOR.items() if flag in stated}
    return {k: spec[k] for k in ("predictor", "canary") if spec.get(k)}
