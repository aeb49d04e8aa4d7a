"""An InferenceService as what it takes to serve it: a pod template, a probe, bounds, targets."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.kserve import nodes, storage, trained
from lockstep.compat.kserve.objects import InferenceService, ServingRuntime
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.runtimes import choose
from lockstep.compat.kserve.scaling import Scaling, count, scaling
from lockstep.compat.kserve.templating import filled
from lockstep.compat.kserve.way import PROBE_ANNOTATION, Way, way

CONTAINER: Final = "kserve-container"
FRAMEWORKS: Final = (
    "sklearn",
    "xgboost",
    "tensorflow",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
)
"""Fields of a predictor that name the format of its model, as KServe had them first."""
_EXTENSION: Final = frozenset(
    (
        "minReplicas",
        "maxReplicas",
        "scaleTarget",
        "scaleMetric",
        "scaleMetricType",
        "autoScaling",
        "containerConcurrency",
        "timeout",
        "canaryTrafficPercent",
        "logger",
        "batcher",
        "labels",
        "annotations",
        "deploymentStrategy",
        "model",
        "workerSpec",
        *FRAMEWORKS,
    )
)
_MODEL: Final = frozenset(
    (
        "modelFormat",
        "runtime",
        "runtimeVersion",
        "protocolVersion",
        "storageUri",
        "storage",
        "confidential",
    )
)
_PORT: Final = 8080
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a service, ready to be run."""

    template: Json
    """Labels, annotations and spec of its pods; what a revision is made of."""
    port: int
    grpc_port: int
    """0 where none is declared."""
    probe: str
    model: str
    protocol: str
    scaling: Scaling
    concurrency: int = 0
    timeout: int = 60
    canary_percent: int | None = None
    runtime: str = ""
    runtime_of_cluster: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)
    way: Way = field(default_factory=Way)
    name: str = "predictor"
    """Which component it is: predictor, transformer, or ``canary-NAME``."""
    workers: int = 0
    """Pods of each replica beside the one that answers requests."""
    worker: Json = field(default_factory=dict)
    """Labels, annotations and spec of those."""
    transformer: Component | None = None
    """What requests come to before the predictor."""
    canaries: tuple[tuple[int, Component], ...] = ()
    """Predictors beside this one, each with its per cent of the requests."""


def predictor(
    service: InferenceService, runtimes: list[ServingRuntime], *, cached: bool = False
) -> Component:
    """Return the predictor of *service*, served by one of *runtimes* unless it brings its own.

    With *cached* its model comes as a Dataset where nodes can read its store.

    Raises:
        Problem: when something in it cannot be served; nothing of it is served then.
    """
    if service.spec.explainer:
        raise Problem("spec.explainer", "...", "explainers are not served; leave it out")
    spec = service.spec.predictor
    if not spec:
        raise Problem("spec.predictor", spec, "a model or containers are needed")
    found = _component(service, spec, runtimes, cached=cached)
    transformer = None
    if service.spec.transformer:
        with _at("spec.predictor", "spec.transformer"):
            transformer = _transformer(service, found, service.spec.transformer)
    canaries = _canaries(service, found, runtimes, cached=cached)
    return replace(found, transformer=transformer, canaries=canaries)


def _transformer(service: InferenceService, behind: Component, spec: Json) -> Component:
    """Return the transformer; it is told where the predictor is, as KServe tells it."""
    if not spec.get("containers") or _model(spec) is not None:
        raise Problem("spec.predictor.containers", "", "a transformer brings its own container")
    if spec.get("workerSpec"):
        raise Problem("spec.predictor.workerSpec", "...", "a transformer is one pod; leave it out")
    spec = copy.deepcopy(spec)
    meta, container = service.metadata, _server(spec)
    told = {
        "--model_name": meta.name,
        "--predictor_host": f"{meta.name}-predictor.{meta.namespace}",
        "--predictor_protocol": behind.protocol,
        "--http_port": str(_PORT),
    }
    args = list(container.get("args", []))
    for name, value in told.items():
        if not any(str(one).partition("=")[0] == name for one in args):
            args += [name, value]
    container["args"] = args
    return replace(_component(service, spec, []), name="transformer")


def _canaries(
    service: InferenceService, stable: Component, runtimes: list[ServingRuntime], *, cached: bool
) -> tuple[tuple[int, Component], ...]:
    found: dict[str, tuple[int, Component]] = {}
    for number, one in enumerate(service.spec.canary):
        where = f"spec.canary[{number}]"
        spec = dict(one.get("predictor") or {})
        name, percent = str(spec.pop("name", "")), one.get("trafficPercent", 0)
        if not _NAME.fullmatch(name) or name in found:
            raise Problem(
                f"{where}.predictor.name", name, "a name of its own is needed: up to 20 of a-z0-9-"
            )
        if not isinstance(percent, int) or isinstance(percent, bool) or not 0 <= percent <= 100:
            raise Problem(f"{where}.trafficPercent", percent, "a whole number from 0 to 100")
        if spec.get("workerSpec"):
            raise Problem(
                f"{where}.predictor.workerSpec",
                "...",
                "a canary has replicas of one pod; release a new version in steps instead: "
                "annotation lockstep.dev/release",
            )
        with _at("spec.predictor", f"{where}.predictor"):
            made = _component(service, spec, runtimes, cached=cached)
        found[name] = (percent, replace(made, name=f"canary-{name}"))
    total = sum(percent for percent, _ in found.values())
    if total > 100:
        raise Problem("spec.canary[].trafficPercent", total, "together they may be 100 at most")
    if found and stable.canary_percent is not None:
        raise Problem(
            "spec.predictor.canaryTrafficPercent",
            stable.canary_percent,
            "spec.canary says how much each version gets; leave one of them out",
        )
    return tuple(found.values())


@contextlib.contextmanager
def _at(before: str, after: str) -> Iterator[None]:
    """Let problems inside name the field where their user wrote it."""
    try:
        yield
    except Problem as problem:
        raise problem.moved(before, after) from None


def _component(
    service: InferenceService, spec: Json, runtimes: list[ServingRuntime], *, cached: bool = False
) -> Component:
    model = _model(spec)
    annotations = {**service.metadata.annotations, **(spec.get("annotations") or {})}
    pod = {key: copy.deepcopy(value) for key, value in spec.items() if key not in _EXTENSION}
    runtime: ServingRuntime | None = None
    protocol, told = "v1", dict[str, str]()
    if model is not None:
        protocol = str(model.get("protocolVersion") or "v1")
        runtime = choose(model, protocol, runtimes)
        pod, told = _with_model(pod, model, runtime, cached=cached)
        pod = filled(pod, service)
        trained.take(pod, _server(pod), model, service.metadata.name)
    elif not pod.get("containers"):
        raise Problem("spec.predictor", "...", f"model, containers or {FRAMEWORKS[0]} is needed")
    workers, worker = 0, dict[str, Any]()
    if stated := spec.get("workerSpec"):
        workers, worker = nodes.split(pod, stated, runtime)
        worker = filled(worker, service)
    container = _server(pod)
    unasked = annotations.get(PROBE_ANNOTATION) == "none" and not container.get("readinessProbe")
    port, grpc_port = _ports(container, declare=not unasked)
    named = service.metadata.name if model else ""
    probe = "" if unasked else _probe(container, port, named, protocol)
    return Component(
        template=_template(spec, pod, runtime, told),
        port=port,
        grpc_port=grpc_port,
        probe=probe,
        model=service.metadata.name,
        protocol=protocol,
        scaling=scaling(spec, container, annotations),
        concurrency=count(spec, "containerConcurrency", 0),
        timeout=count(spec, "timeout", 60, least=1),
        canary_percent=_percent(spec.get("canaryTrafficPercent")),
        runtime=runtime.metadata.name if runtime else "",
        runtime_of_cluster=runtime is None or not runtime.metadata.namespace,
        annotations=annotations,
        way=way(service, spec, model, protocol),
        workers=workers,
        worker=worker,
    )


def _model(spec: Json) -> Json | None:
    stated = [name for name in ("model", *FRAMEWORKS) if spec.get(name) is not None]
    if len(stated) > 1:
        raise Problem(
            "spec.predictor",
            ", ".join(stated),
            "exactly one of them may be set",
            "MultipleFrameworks",
        )
    if not stated:
        return None
    model: Json = dict(spec[stated[0]])
    if stated[0] != "model":
        model.setdefault("modelFormat", {"name": stated[0]})
    if not (model.get("modelFormat") or {}).get("name"):
        raise Problem("spec.predictor.model.modelFormat.name", "", "the model's format is needed")
    return model


def _with_model(
    pod: Json, model: Json, runtime: ServingRuntime, *, cached: bool
) -> tuple[Json, dict[str, str]]:
    """Return *runtime*'s pod spec with *model* and *pod* over it; annotations for the model."""
    spec = runtime.spec
    base: Json = {"containers": copy.deepcopy(spec.containers)}
    for key, value in (
        ("volumes", spec.volumes),
        ("nodeSelector", spec.node_selector),
        ("affinity", spec.affinity),
        ("tolerations", spec.tolerations),
        ("imagePullSecrets", spec.image_pull_secrets),
    ):
        if value:
            base[key] = copy.deepcopy(value)
    extra = pod.pop("containers", [])
    merged = {**base, **pod}
    merged["volumes"] = [*base.get("volumes", []), *pod.get("volumes", [])]
    container = _server(merged)
    own = {key: value for key, value in model.items() if key not in _MODEL and key != "name"}
    _lay_over(container, own)
    if version := model.get("runtimeVersion"):
        container["image"] = f"{container['image'].rpartition(':')[0]}:{version}"
    for one in extra:
        same = [c for c in merged["containers"] if c["name"] == one.get("name")]
        if same:
            _lay_over(same[0], one)
        else:
            merged["containers"].append(one)
    found = model.get("storage") or {}
    told: dict[str, str] = {}
    if uri := model.get("storageUri") or found.get("path"):
        provision = storage.provide(str(uri), str(found.get("key") or ""), cached=cached)
        told = provision.annotations
        merged["volumes"] += provision.volumes
        container["volumeMounts"] = [*container.get("volumeMounts", []), *provision.mounts]
        if fetching := storage.initializers(provision, container):
            merged["initContainers"] = [*merged.get("initContainers", []), *fetching]
    return merged, told


def _lay_over(container: Json, own: Json) -> None:
    """Lay the fields of *own* over *container*: arguments are added, variables go by name."""
    for key, value in copy.deepcopy(own).items():
        if key == "args":
            container["args"] = [*container.get("args", []), *value]
        elif key == "env":
            names = {one["name"] for one in value}
            kept = [one for one in container.get("env", []) if one["name"] not in names]
            container["env"] = [*kept, *value]
        elif key == "resources":
            mine = container.get("resources") or {}
            container["resources"] = {
                part: {**(mine.get(part) or {}), **(value.get(part) or {})}
                for part in {*mine, *value}
            }
        else:
            container[key] = value


def _server(pod: Json) -> Json:
    """Return the container that answers requests."""
    containers: list[Json] = pod["containers"]
    for one in containers:
        if one.get("name") == CONTAINER:
            return one
    containers[0].setdefault("name", CONTAINER)
    return containers[0]


def _ports(container: Json, *, declare: bool = True) -> tuple[int, int]:
    """Return the ports that take HTTP and gRPC; declare one, so that the pod has it for itself.

    As with Knative, a port is for gRPC where its name is ``h2c`` or begins with ``grpc``.
    """
    ports = container.setdefault("ports", []) if declare else container.get("ports", [])
    if not ports:
        if not declare:
            return _PORT, 0
        ports.append({"containerPort": _PORT, "protocol": "TCP"})
    grpc = [one for one in ports if str(one.get("name", "")).startswith(("h2c", "grpc"))]
    plain = [one for one in ports if one not in grpc] or grpc
    return int(plain[0]["containerPort"]), int(grpc[0]["containerPort"]) if grpc else 0


def _probe(container: Json, port: int, model: str, protocol: str) -> str:
    """Return the path on which the model says that it can answer; have the node ask there too."""
    stated = container.get("readinessProbe")
    if stated:
        return str((stated.get("httpGet") or {}).get("path", ""))
    if not model or (protocol.startswith("grpc") and _ports(container)[0] == _ports(container)[1]):
        container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
        return ""
    path = f"/v2/models/{model}/ready" if protocol.endswith("v2") else f"/v1/models/{model}"
    container["readinessProbe"] = {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    return path


def _template(spec: Json, pod: Json, runtime: ServingRuntime | None, told: dict[str, str]) -> Json:
    given = runtime.spec if runtime else None
    _server(pod).setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    return {
        "labels": {**(given.labels if given else {}), **(spec.get("labels") or {})},
        "annotations": {
            **(given.annotations if given else {}),
            **(spec.get("annotations") or {}),
            **told,
        },
        "spec": pod,
    }


def _percent(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        raise Problem(
            "spec.predictor.canaryTrafficPercent", value, "a whole number from 0 to 100 is needed"
        )
    return value
