"""LLMInferenceServices as InferenceServices: one that answers, and one for prefill if wished."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import field

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json, Wire, convert
from lockstep.compat.kserve import llm_fields, storage, vllm
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.way import (
    CHOICE_ANNOTATION,
    MODELS_ANNOTATION,
    PREFILL_ANNOTATION,
)

IMAGE: Final = "vllm/vllm-openai:latest"
PREFILL: Final = "-prefill"
_CARRIED: Final = ("autoscaling.knative.dev/", "serving.kserve.io/")
"""How annotations begin that hold for the services as well."""


class Parallelism(Wire, frozen=True):
    """How a model is split over GPUs and nodes."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    data_local: int | None = None
    data_rpc_port: int | None = field(default=None, name="dataRPCPort")
    expert: bool = False


class Adapter(Wire, frozen=True):
    """A LoRA adapter."""

    uri: str = ""
    name: str = ""


class Lora(Wire, frozen=True):
    """Adapters of a model."""

    adapters: list[Adapter] = []
    max_rank: int | None = None
    max_adapters: int | None = None
    max_cpu_adapters: int | None = None


class LlmModel(Wire, frozen=True):
    """What is served."""

    uri: str = ""
    name: str = ""
    lora: Lora = Lora()


class Scale(Wire, frozen=True):
    """Bounds of the number of replicas."""

    min_replicas: int | None = None
    max_replicas: int | None = None


class Workload(Wire, frozen=True):
    """Replicas that are alike."""

    replicas: int | None = None
    parallelism: Parallelism = Parallelism()
    template: Json = {}
    worker: Json = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    scaling: Scale = Scale()


class LlmSpec(Workload, frozen=True):
    """A language model and how it is served."""

    model: LlmModel = LlmModel()
    prefill: Workload | None = None
    trust_remote_code: bool = False


Configs = Callable[[str], AnyObject | None]
"""From a name to the LLMInferenceServiceConfig that a service may refer to."""


def services(
    obj: AnyObject, *, cached: bool = False, configs: Configs = lambda _: None
) -> list[Json]:
    """Return the InferenceServices that *obj* becomes: name and spec, annotations.

    With *cached* their models come as Datasets where nodes can read the store. What *configs* that
    it refers to say holds where *obj* says nothing; a later one comes before an earlier one.

    Raises:
        Problem: when something in it cannot be honoured.
    """
    try:
        spec = convert(_merged(obj.spec, configs), LlmSpec)
    except msgspec.ValidationError as error:
        raise Problem("spec", "...", str(error)) from None
    if not spec.model.uri:
        raise Problem("spec.model.uri", "", "a URI such as hf://ORG/MODEL is needed")
    name = obj.metadata.name
    served = spec.model.name or name
    names = [served, *(one.name for one in spec.model.lora.adapters)]
    given = {k: v for k, v in obj.metadata.annotations.items() if k.startswith(_CARRIED)}
    annotations = {**given, MODELS_ANNOTATION: ",".join(names), CHOICE_ANNOTATION: "prefix"}
    found = []
    if spec.prefill is not None:
        annotations[PREFILL_ANNOTATION] = name + PREFILL
        quiet = {**given, CHOICE_ANNOTATION: "prefix"}
        made = _predictor(spec, spec.prefill, served, "spec.prefill", cached=cached)
        found.append({"name": name + PREFILL, "annotations": quiet, "spec": {"predictor": made}})
    main = _predictor(spec, spec, served, "spec", cached=cached)
    return [{"name": name, "annotations": annotations, "spec": {"predictor": main}}, *found]


def ignored(obj: AnyObject, configs: Configs = lambda _: None) -> list[str]:
    """Return the fields of *obj* and its configs that have no effect, and what holds instead.

    Raises:
        Problem: when a config that it refers to is not there.
    """
    return llm_fields.ignored(_merged(obj.spec, configs))


def _merged(spec: Json, configs: Configs) -> Json:
    """Return *spec* over the configs that it refers to."""
    found: Json = {}
    for number, ref in enumerate(spec.get("baseRefs") or []):
        name = str((ref or {}).get("name") or "")
        config = configs(name)
        if config is None:
            text = "there is no such LLMInferenceServiceConfig in its namespace or lockstep-system"
            raise Problem(f"spec.baseRefs[{number}].name", name, text)
        found = _over(found, config.spec)
    own = {key: value for key, value in spec.items() if key != "baseRefs"}
    merged: Json = _over(found, own)
    return merged


def _over(below: Any, above: Any) -> Any:
    """Return *above* laid over *below*; parts of lists that have names meet by name."""
    if isinstance(below, dict) and isinstance(above, dict):
        both = {key: _over(below[key], above[key]) for key in below.keys() & above.keys()}
        return {**below, **above, **both}
    if isinstance(below, list) and isinstance(above, list):
        parts = [*below, *above]
        if parts and all(isinstance(one, dict) and "name" in one for one in parts):
            named: Json = {}
            for one in parts:
                named[one["name"]] = _over(named.get(one["name"], {}), one)
            return list(named.values())
    return copy.deepcopy(above)


def _predictor(spec: LlmSpec, load: Workload, served: str, where: str, *, cached: bool) -> Json:
    pod = copy.deepcopy(load.template) or {}
    main = _main(pod)
    main.setdefault("image", IMAGE)
    layout, gpus = _layout(load.parallelism, where, transfers=spec.prefill is not None)
    extra = _arguments(spec)
    generated = not main.get("command") and not main.get("args")
    if generated:
        _take(main, vllm.head(layout, served, extra))
    main.setdefault("ports", [{"containerPort": vllm.PORT, "protocol": "TCP"}])
    if gpus:
        limits = main.setdefault("resources", {}).setdefault("limits", {})
        limits.setdefault("nvidia.com/gpu", gpus)
    provision = storage.provide(spec.model.uri, cached=cached)
    _mount(pod, main, provision)
    predictor: Json = {**pod, **_bounds(load, where)}
    if labels := load.labels:
        predictor["labels"] = dict(labels)
    if annotations := {**load.annotations, **provision.annotations}:
        predictor["annotations"] = annotations
    if load.worker or layout.nodes > 1:
        if layout.nodes < 2:
            text = "parallelism says over how many nodes: pipeline, or data over dataLocal"
            raise Problem(f"{where}.worker", "...", text)
        worker = copy.deepcopy(load.worker)
        if generated:
            helper = _main(worker)
            helper.setdefault("image", main["image"])
            if not helper.get("command") and not helper.get("args"):
                _take(helper, vllm.worker(layout, served, extra))
            _mount(worker, helper, provision)
        predictor["workerSpec"] = {
            **worker,
            "pipelineParallelSize": layout.nodes,
            **({"tensorParallelSize": gpus} if gpus else {}),
        }
    return predictor


def _main(pod: Json) -> Json:
    """Return the container that runs the engine; it comes first."""
    containers = pod.setdefault("containers", [{"name": "main"}])
    main: Json = next((one for one in containers if one.get("name") == "main"), containers[0])
    containers.remove(main)
    containers.insert(0, main)
    main.setdefault("name", "main")
    return main


def _take(container: Json, generated: Json) -> None:
    """Put a *generated* command into a container; its own variables hold."""
    names = {one["name"] for one in container.get("env", [])}
    added = [one for one in generated["env"] if one["name"] not in names]
    container |= {key: value for key, value in generated.items() if key != "env"}
    if added:
        container["env"] = [*added, *container.get("env", [])]


def _mount(pod: Json, container: Json, provision: storage.Provision) -> None:
    pod["volumes"] = [*pod.get("volumes", []), *provision.volumes]
    container["volumeMounts"] = [*container.get("volumeMounts", []), *provision.mounts]
    if fetching := storage.initializers(provision, container):
        pod["initContainers"] = [*pod.get("initContainers", []), *fetching]


def _layout(split: Parallelism, where: str, *, transfers: bool) -> tuple[vllm.Layout, int]:
    """Return how a replica lies over nodes, and how many GPUs it takes on each; 0 if not said."""
    for name in ("tensor", "pipeline", "data", "data_local", "data_rpc_port"):
        value = getattr(split, name)
        if value is not None and value < 1:
            field = {"data_local": "dataLocal", "data_rpc_port": "dataRPCPort"}.get(name, name)
            raise Problem(f"{where}.parallelism.{field}", value, "a whole number from 1 is needed")
    nodes, data, local = split.pipeline or 1, split.data, split.data_local
    if local and not data:
        raise Problem(f"{where}.parallelism.dataLocal", local, "data is needed: ranks of all nodes")
    if (data or 1) > 1 and nodes > 1:
        text = "either data or pipeline goes over nodes; leave one of them out"
        raise Problem(f"{where}.parallelism.pipeline", nodes, text)
    if data and local:
        if data % local:
            text = f"dataLocal {local} must divide it"
            raise Problem(f"{where}.parallelism.data", data, text)
        nodes = data // local
    layout = vllm.Layout(
        nodes,
        split.tensor,
        split.pipeline,
        data,
        local,
        split.data_rpc_port or vllm.RPC_PORT,
        split.expert,
        transfers,
    )
    ranks = local or data
    return layout, (split.tensor or 1) * (ranks or 1) if split.tensor or ranks else 0


def _arguments(spec: LlmSpec) -> list[str]:
    """Return the arguments that do not depend on how a replica lies over nodes."""
    found = ["--trust-remote-code"] if spec.trust_remote_code else []
    lora = spec.model.lora
    if not lora.adapters:
        return found
    found.append("--enable-lora")
    sizes = (
        ("max-lora-rank", lora.max_rank),
        ("max-loras", lora.max_adapters),
        ("max-cpu-loras", lora.max_cpu_adapters),
    )
    found += [f"--{name}={value}" for name, value in sizes if value]
    found.append("--lora-modules")
    for number, one in enumerate(lora.adapters):
        scheme, _, rest = one.uri.partition("://")
        if scheme != "hf" or not one.name:
            field = f"spec.model.lora.adapters[{number}]"
            raise Problem(field, one.uri, "a name and a URI such as hf://ORG/ADAPTER are needed")
        found.append(f"{one.name}={rest}")
    return found


def _bounds(load: Workload, where: str) -> Json:
    least, most = load.scaling.min_replicas, load.scaling.max_replicas
    if load.replicas is not None and (least is not None or most is not None):
        raise Problem(f"{where}.replicas", load.replicas, "scaling says how many; leave one out")
    if least is None and most is None:
        count = 1 if load.replicas is None else load.replicas
        return {"minReplicas": count, "maxReplicas": max(1, count)}
    return {"minReplicas": 1 if least is None else least, "maxReplicas": most or 0}
