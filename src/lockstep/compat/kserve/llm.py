"""LLMInferenceServices as InferenceServices: one that answers, and one for prefill if wished."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.wire import Wire, convert
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.way import (
    CHOICE_ANNOTATION,
    MODELS_ANNOTATION,
    PREFILL_ANNOTATION,
)

Json = dict[str, Any]

IMAGE: Final = "vllm/vllm-openai:latest"
PORT: Final = 8000
PREFILL: Final = "-prefill"


class Parallelism(Wire, frozen=True):
    """How a model is split over GPUs and nodes."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    data_local: int | None = None
    expert: bool = False


class Adapter(Wire, frozen=True):
    """A LoRA adapter."""

    uri: str = ""
    name: str = ""


class Lora(Wire, frozen=True):
    """Adapters of a model."""

    adapters: list[Adapter] = []


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
    scaling: Scale = Scale()


class LlmSpec(Workload, frozen=True):
    """A language model and how it is served."""

    model: LlmModel = LlmModel()
    prefill: Workload | None = None


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
    annotations = {MODELS_ANNOTATION: ",".join(names), CHOICE_ANNOTATION: "prefix"}
    found = []
    if spec.prefill is not None:
        annotations[PREFILL_ANNOTATION] = name + PREFILL
        quiet = {CHOICE_ANNOTATION: "prefix"}
        made = _predictor(spec, spec.prefill, served, "spec.prefill", cached=cached)
        found.append({"name": name + PREFILL, "annotations": quiet, "spec": {"predictor": made}})
    main = _predictor(spec, spec, served, "spec", cached=cached)
    return [{"name": name, "annotations": annotations, "spec": {"predictor": main}}, *found]


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
    containers = pod.setdefault("containers", [{"name": "main"}])
    main = next((one for one in containers if one.get("name") == "main"), containers[0])
    containers.remove(main)
    containers.insert(0, main)
    main.setdefault("name", "main")
    main.setdefault("image", IMAGE)
    nodes, gpus = _sizes(load.parallelism, where)
    if not main.get("command") and not main.get("args"):
        main["command"] = ["vllm", "serve", storage.MODELS]
        main["args"] = _arguments(spec, load.parallelism, served)
        main["readinessProbe"] = {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1}
    main.setdefault("ports", [{"containerPort": PORT, "protocol": "TCP"}])
    if gpus:
        limits = main.setdefault("resources", {}).setdefault("limits", {})
        limits.setdefault("nvidia.com/gpu", gpus)
    provision = storage.provide(spec.model.uri, cached=cached)
    pod["volumes"] = [*pod.get("volumes", []), *provision.volumes]
    main["volumeMounts"] = [*main.get("volumeMounts", []), *provision.mounts]
    if provision.init_containers:
        pod["initContainers"] = [*pod.get("initContainers", []), *provision.init_containers]
    predictor: Json = {**pod, **_bounds(load, where)}
    if provision.annotations:
        predictor["annotations"] = provision.annotations
    if load.worker or nodes > 1:
        if nodes < 2:
            text = "parallelism says over how many nodes: pipeline, or data over dataLocal"
            raise Problem(f"{where}.worker", "...", text)
        worker = copy.deepcopy(load.worker)
        predictor["workerSpec"] = {
            **worker,
            "pipelineParallelSize": nodes,
            **({"tensorParallelSize": gpus} if gpus else {}),
        }
    return predictor


def _sizes(split: Parallelism, where: str) -> tuple[int, int]:
    """Return how many nodes a replica takes, and how many GPUs on each; 0 where not said."""
    for name in ("tensor", "pipeline", "data", "data_local"):
        value = getattr(split, name)
        if value is not None and value < 1:
            field = name.replace("data_local", "dataLocal")
            raise Problem(f"{where}.parallelism.{field}", value, "a whole number from 1 is needed")
    nodes = split.pipeline or 1
    if split.data and split.data_local:
        if split.data % split.data_local:
            raise Problem(
                f"{where}.parallelism.data", split.data, f"dataLocal {split.data_local} divides it"
            )
        nodes = split.data // split.data_local
    gpus = (split.tensor or 1) * (split.data_local or 1)
    return nodes, gpus if split.tensor or split.data_local else 0


def _arguments(spec: LlmSpec, split: Parallelism, served: str) -> list[str]:
    found = [f"--served-model-name={served}", f"--port={PORT}"]
    if split.tensor:
        found.append(f"--tensor-parallel-size={split.tensor}")
    if split.pipeline:
        found.append(f"--pipeline-parallel-size={split.pipeline}")
    if split.data:
        found.append(f"--data-parallel-size={split.data}")
    if split.expert:
        found.append("--enable-expert-parallel")
    if spec.model.lora.adapters:
        found += ["--enable-lora", "--lora-modules"]
    for number, one in enumerate(spec.model.lora.adapters):
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
