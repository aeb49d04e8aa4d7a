"""``arena serve``: services as InferenceServices; a second version of one is a canary beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.cli.arena import pods
from lockstep.cli.arena.flags import Flag, Kind
from lockstep.cli.arena.parse import Values, key, parse
from lockstep.cli.failure import BadInput

VERSION: Final = "servingVersion"
"""Label of the pods of one version, as Arena has it."""
TYPE: Final = "servingType"
_VERSION: Final = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")
_POD: Final = (
    Flag("name", becomes="metadata.name"),
    Flag("version", becomes=f"labels[{VERSION}]", help="a second one waits for traffic-split"),
    Flag("image", becomes="containers.image"),
    Flag("image-pull-policy", default="IfNotPresent", becomes="containers.imagePullPolicy"),
    Flag("image-pull-secret", "list", becomes="imagePullSecrets"),
    Flag("replicas", "number", 1, becomes="minReplicas"),
    Flag("cpu", becomes="containers.resources"),
    Flag("memory", becomes="containers.resources"),
    Flag("gpus", "number", 0, becomes="containers.resources"),
    Flag("device", "list", becomes="containers.resources"),
    Flag("share-memory", becomes="volumes"),
    Flag("env", "list", short="e", becomes="containers.env"),
    Flag("data", "list", short="d", becomes="volumes", help="CLAIM:PATH"),
    Flag("data-dir", "list", becomes="volumes"),
    Flag("selector", "list", becomes="nodeSelector"),
    Flag("toleration", "list", becomes="tolerations"),
    Flag("label", "list", short="l", becomes="labels"),
    Flag("annotation", "list", short="a", becomes="annotations"),
    Flag("shell", default="sh", becomes="containers.command"),
    Flag("gpumemory", "number", 0),
    Flag("gpucore", "number", 0),
    Flag("enable-istio", "switch"),
    Flag("expose-service", "switch"),
    Flag("dry-run", "switch", becomes="(print it)"),
)
_SCALE: Final = (
    Flag("min-replicas", "number", becomes="minReplicas"),
    Flag("max-replicas", "number", becomes="maxReplicas"),
    Flag("scale-target", "number", becomes="scaleTarget"),
    Flag("scale-metric", becomes="scaleMetric"),
    Flag("container-concurrency", "number", becomes="containerConcurrency"),
    Flag("timeout", "number", becomes="timeout"),
    Flag("canary-traffic-percent", "number", becomes="canaryTrafficPercent"),
)
_AMOUNTS: Final[tuple[tuple[str, Kind], ...]] = (
    ("cpu", "text"),
    ("memory", "text"),
    ("gpus", "number"),
)
TYPES: Final[dict[str, tuple[Flag, ...]]] = {
    "kserve": (
        *_POD,
        *_SCALE,
        Flag("model-format", becomes="model.modelFormat"),
        Flag("runtime", becomes="model.runtime"),
        Flag("storage-uri", becomes="model.storageUri"),
        Flag("runtime-version", becomes="model.runtimeVersion"),
        Flag("protocol-version", becomes="model.protocolVersion"),
        Flag("port", "number", 8080, becomes="containers.ports"),
        Flag("enable-prometheus", "switch", becomes="(nothing: the router counts)"),
        Flag("metrics-port", "number", becomes="(nothing: /metrics is read at the port)"),
    ),
    "custom": (
        *_POD,
        Flag("port", "number", 0, becomes="containers.ports, for gRPC"),
        Flag("restful-port", "number", 0, becomes="containers.ports"),
        Flag("metrics-port", "number", 0, becomes="(nothing: /metrics is read at the port)"),
        Flag("max-surge", becomes="(nothing: new replicas serve before old ones go)"),
        Flag("max-unavailable", becomes="(nothing: new replicas serve before old ones go)"),
    ),
    "tensorflow": (
        *_POD,
        Flag("model-name", becomes="containers.args"),
        Flag("model-path", becomes="containers.args"),
        Flag("port", "number", 8500, becomes="containers.ports"),
        Flag("restful-port", "number", 8501, becomes="containers.ports"),
        Flag("model-config-file"),
        Flag("version-policy"),
    ),
    "triton": (
        *_POD,
        Flag("model-repository", becomes="containers.args"),
        Flag("load-models", becomes="containers.args"),
        Flag("http-port", "number", 8000, becomes="containers.ports"),
        Flag("grpc-port", "number", 8001, becomes="containers.ports"),
        Flag("metric-port", "number", 8002, becomes="containers.args"),
        Flag("allow-metrics", "switch", becomes="(nothing: they are always there)"),
        Flag("extend-command", becomes="containers.args"),
    ),
    "distributed": (
        *_POD,
        Flag("masters", "number", 1, becomes="(a check: a replica has one)"),
        Flag("workers", "number", 0, becomes="workerSpec.pipelineParallelSize"),
        *(
            Flag(f"{role}-{name}", kind, becomes="containers.resources")
            for role in ("master", "worker")
            for name, kind in _AMOUNTS
        ),
        Flag("master-command", becomes="containers.command"),
        Flag("worker-command", becomes="workerSpec.containers.command"),
        Flag("port", "number", 0, becomes="containers.ports, for gRPC"),
        Flag("restful-port", "number", 8000, becomes="containers.ports"),
    ),
}
NAMES: Final = {"tf": "tensorflow"}
SPLIT: Final = (
    Flag("name", becomes="metadata.name"),
    Flag("version-weight", "list", short="v", becomes="canary.trafficPercent", help="V1:90"),
)


def parsed(kind: str, args: list[str]) -> Values:
    """Return the flags of a service of *kind*, with its command.

    Raises:
        BadInput: for a command line that makes no sense.
    """
    values, command = parse(args, TYPES[kind])
    refused = [flag.name for flag in TYPES[kind] if not flag.becomes and values.get(key(flag))]
    if refused:
        raise BadInput(f"--{refused[0]} is not served by Lockstep", "leave it out")
    if not values["name"]:
        raise BadInput("--name must be set", "write --name=NAME")
    values["command"] = " ".join(command) or values.get("master_command") or ""
    values["working_dir"] = "/"
    return values


def service(kind: str, given: Values) -> Json:
    """Return the InferenceService that the flags of *kind* describe.

    Raises:
        BadInput: for a value that makes no sense.
    """
    version = given.get("version") or ""
    if version and not _VERSION.fullmatch(version):
        raise BadInput(f"--version: {version!r} cannot name a version", "up to 20 of a-z0-9-")
    predictor = _PREDICTORS[kind](given)
    labels = {**pods.pairs("label", given["label"] or []), TYPE: kind}
    if version:
        labels[VERSION] = version
    predictor["labels"] = labels
    annotations = pods.pairs("annotation", given["annotation"] or [])
    meta: Json = {"name": given["name"], "labels": {TYPE: kind}}
    if annotations:
        meta["annotations"] = annotations
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": meta,
        "spec": {"predictor": predictor},
    }


def _pod(given: Values, **own: Any) -> tuple[Json, Json]:
    """Return a pod's spec and its first container."""
    if not (own.get("image") or given.get("image")):
        raise BadInput("--image must be set", "write --image=IMAGE")
    plain = {**given, "label": [], "annotation": []}
    spec: Json = pods.template(plain, **own)["spec"]
    container = spec["containers"][0]
    container["name"] = "kserve-container"
    container.pop("workingDir", None)
    return spec, container


def _counts(given: Values) -> Json:
    return {"minReplicas": given["replicas"], "maxReplicas": max(1, given["replicas"])}


def _ports(given: Values, plain: str, grpc: str) -> list[Json]:
    found = []
    if given.get(plain):
        found.append({"name": "http", "containerPort": given[plain], "protocol": "TCP"})
    if given.get(grpc):
        found.append({"name": "grpc", "containerPort": given[grpc], "protocol": "TCP"})
    return found


def _custom(given: Values) -> Json:
    spec, container = _pod(given)
    if ports := _ports(given, "restful_port", "port"):
        container["ports"] = ports
    return {**spec, **_counts(given)}


def _kserve(given: Values) -> Json:
    fields = {
        "min_replicas": "minReplicas",
        "max_replicas": "maxReplicas",
        "scale_target": "scaleTarget",
        "scale_metric": "scaleMetric",
        "container_concurrency": "containerConcurrency",
        "timeout": "timeout",
        "canary_traffic_percent": "canaryTrafficPercent",
    }
    scale = {name: given[key] for key, name in fields.items() if given.get(key) is not None}
    if not given.get("model_format"):
        spec, container = _pod(given)
        container["ports"] = [{"containerPort": given["port"], "protocol": "TCP"}]
        return {**_counts(given), **spec, **scale}
    model: Json = {"modelFormat": {"name": given["model_format"]}}
    names = {
        "storage_uri": "storageUri",
        "runtime": "runtime",
        "runtime_version": "runtimeVersion",
        "protocol_version": "protocolVersion",
    }
    model |= {name: given[key] for key, name in names.items() if given.get(key)}
    spec, container = _pod(given, image=given.get("image") or "none")
    for field in ("env", "resources", "volumeMounts"):
        if container.get(field):
            model[field] = container[field]
    if given.get("image"):
        model["image"] = given["image"]
    spec.pop("containers")
    return {"minReplicas": given["replicas"], **spec, **scale, "model": model}


def _tensorflow(given: Values) -> Json:
    if not given["model_name"] or not given["model_path"]:
        raise BadInput("--model-name and --model-path must be set", "--model-path=/models/NAME")
    spec, container = _pod({**given, "command": ""})
    container["args"] = [
        f"--port={given['port']}",
        f"--rest_api_port={given['restful_port']}",
        f"--model_name={given['model_name']}",
        f"--model_base_path={given['model_path']}",
    ]
    container["ports"] = _ports(given, "restful_port", "port")
    path = f"/v1/models/{given['model_name']}"
    container["readinessProbe"] = {
        "httpGet": {"path": path, "port": given["restful_port"]},
        "periodSeconds": 1,
    }
    return {**spec, **_counts(given)}


def _triton(given: Values) -> Json:
    if not given["model_repository"]:
        raise BadInput("--model-repository must be set", "--model-repository=/models")
    spec, container = _pod({**given, "command": ""})
    args = [
        "tritonserver",
        f"--model-repository={given['model_repository']}",
        f"--http-port={given['http_port']}",
        f"--grpc-port={given['grpc_port']}",
        f"--metrics-port={given['metric_port']}",
    ]
    if models := given["load_models"]:
        args.append("--model-control-mode=explicit")
        args += [f"--load-model={one}" for one in models.split(",")]
    container["args"] = [*args, *(given["extend_command"] or "").split()]
    container["ports"] = _ports(given, "http_port", "grpc_port")
    container["readinessProbe"] = {
        "httpGet": {"path": "/v2/health/ready", "port": given["http_port"]},
        "periodSeconds": 1,
    }
    return {**spec, **_counts(given)}


def _distributed(given: Values) -> Json:
    if given["masters"] != 1:
        raise BadInput(f"--masters={given['masters']}: a replica has one", "leave it out")

    def sized(role: str) -> Json:
        return {name: given.get(f"{role}_{name}") for name in ("cpu", "memory", "gpus")}

    spec, container = _pod(given, **sized("master"))
    container["ports"] = _ports(given, "restful_port", "port")
    found = {**spec, **_counts(given)}
    if given["workers"]:
        command = given.get("worker_command") or given["command"]
        worker, box = _pod({**given, "command": command}, **sized("worker"))
        box["name"] = "worker-container"
        found["workerSpec"] = {**worker, "pipelineParallelSize": given["workers"] + 1}
    return found


_PREDICTORS: Final[dict[str, Callable[[Values], Json]]] = {
    "kserve": _kserve,
    "custom": _custom,
    "tensorflow": _tensorflow,
    "triton": _triton,
    "distributed": _distributed,
}


def version_of(predictor: Json) -> str:
    """Return the version that a predictor serves; empty where it has none."""
    return str((predictor.get("labels") or {}).get(VERSION, ""))


def beside(there: Json, new: Json) -> Json:
    """Return the spec of a service *there* with the version of *new* in it.

    One that it has already is replaced where it stands; another comes as a canary without requests.

    Raises:
        BadInput: when versions cannot be told apart, or a canary cannot be what *new* is.
    """
    version = version_of(new["spec"]["predictor"])
    if version == version_of(there["spec"]["predictor"]):
        return {"predictor": new["spec"]["predictor"]}
    if not version:
        raise BadInput("this service has versions: --version must be set", "write --version=V2")
    if new["spec"]["predictor"].get("workerSpec"):
        raise BadInput(
            "a second version cannot be distributed", "use another name, or `arena serve update`"
        )
    canaries = there["spec"].get("canary") or []
    kept = [one for one in canaries if _named(one) != version]
    shares = [one["trafficPercent"] for one in canaries if _named(one) == version]
    predictor = {**new["spec"]["predictor"], "name": version}
    return {"canary": [*kept, {"predictor": predictor, "trafficPercent": (shares or [0])[0]}]}


def _named(canary: Json) -> str:
    return str(canary["predictor"]["name"])


def split(there: Json, texts: list[str]) -> Json:
    """Return the spec of a service *there* with shares such as ``v1:90``.

    Raises:
        BadInput: when a version is not there, or the shares do not make 100.
    """
    shares: dict[str, int] = {}
    for text in texts:
        version, colon, share = text.rpartition(":")
        if not colon or not share.isdecimal():
            raise BadInput(f"--version-weight: {text!r} is not VERSION:WEIGHT", "write V1:90")
        shares[version] = int(share)
    stable = version_of(there["spec"]["predictor"])
    canaries = there["spec"].get("canary") or []
    known = [stable, *map(_named, canaries)]
    unknown = [one for one in shares if one not in known]
    if unknown:
        raise BadInput(f"there is no version {unknown[0]!r}", f"there are: {', '.join(known)}")
    if sum(shares.values()) != 100:
        raise BadInput(f"the weights make {sum(shares.values())}", "they must make 100")
    return {"canary": [{**one, "trafficPercent": shares.get(_named(one), 0)} for one in canaries]}
