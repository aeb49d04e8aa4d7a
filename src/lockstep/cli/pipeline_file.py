"""A file with a pipeline of any dialect as the run that is to be created."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from lockstep.api.names import API_VERSION, QUEUE_LABEL
from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import Json, convert
from lockstep.cli.failure import BadInput
from lockstep.compat.argo import translate as argo
from lockstep.compat.argo.fields import parameters
from lockstep.compat.kfp import translate as kfp
from lockstep.compat.translation import Refused
from lockstep.pipelines.core.check import problems


def read(file: Path, parameters: list[str], name: str | None, wanted: Json) -> Json:
    """Return the run that *file* describes, with *parameters* and what else is *wanted* of it.

    Raises:
        BadInput: when it holds no pipeline, or one that cannot run here.
    """
    import yaml

    try:
        documents = [one for one in yaml.safe_load_all(file.read_text()) if one]
    except (OSError, yaml.YAMLError) as error:
        raise BadInput(f"{file}: {error}") from error
    try:
        meta, spec, types = _pipeline(documents, file)
    except Refused as refused:
        raise BadInput(f"{file}: {refused.problem}") from None
    given = dict(_parameter(one, types) for one in parameters)
    spec = {**spec, **wanted, "arguments": {**(spec.get("arguments") or {}), **given}}
    try:
        found = problems(convert(spec, PipelineRunSpec))
    except msgspec.ValidationError as error:
        raise BadInput(f"{file}: {error}") from error
    if found:
        raise BadInput(f"{file}: " + "\n".join(str(one) for one in found))
    if name is not None:
        meta = {**meta, "name": name}
        meta.pop("generateName", None)
    return {"apiVersion": API_VERSION, "kind": "PipelineRun", "metadata": meta, "spec": spec}


def trigger(run: Json, name: str, model: str | None, stage: str, dataset: str | None) -> Json:
    """Return what makes *run* for each new version of a model or of a dataset.

    Raises:
        BadInput: when not one of both is given.
    """
    if (model is None) == (dataset is None):
        raise BadInput("give one of --model and --dataset")
    if stage and model is None:
        raise BadInput("--stage: only the versions of a model have stages; give --model")
    spec: Json = {"run": {"spec": run["spec"]}}
    if model is not None:
        spec["modelVersion"] = {"model": model, **({"stage": stage} if stage else {})}
    else:
        spec["dataset"] = dataset
    body = {"apiVersion": API_VERSION, "kind": "PipelineTrigger", "metadata": {"name": name}}
    return body | {"spec": spec}


def _pipeline(documents: list[Any], file: Path) -> tuple[Json, Json, dict[str, str]]:
    """Return metadata, spec and the types of the parameters of what is in *documents*."""
    first: Any = documents[0] if documents else None
    if kfp.is_pipeline(first):
        platform = next((d for d in documents[1:] if isinstance(d, dict) and "platforms" in d), {})
        spec = kfp.translate(first, platform)
        return {"generateName": _prefix(kfp.name_of(first))}, spec, kfp.parameters(first)
    if isinstance(first, dict) and first.get("kind") == "PipelineRun":
        return dict(first.get("metadata") or {}), dict(first.get("spec") or {}), {}
    if isinstance(first, dict) and first.get("kind") == "Workflow":
        return _workflow(first, documents[1:])
    kind = first.get("kind") if isinstance(first, dict) else None
    raise BadInput(
        f"{file}: {kind or 'this'} is no pipeline",
        hint="give what kfp's compiler wrote, an Argo Workflow, or a PipelineRun",
    )


def _workflow(first: Json, others: list[Any]) -> tuple[Json, Json, dict[str, str]]:
    """Return metadata and spec of a Workflow, whose templates may stand in the same file."""
    known = {
        (one["metadata"]["name"], one["kind"] == "ClusterWorkflowTemplate"): one["spec"]
        for one in others
        if isinstance(one, dict) and str(one.get("kind", "")).endswith("WorkflowTemplate")
    }
    given = first.get("metadata") or {}
    spec = argo.spec(first["spec"], lambda name, cluster: known.get((name, cluster)), given)
    meta = {key: given[key] for key in ("name", "generateName", "labels") if key in given}
    wanted = {
        "queue": (given.get("labels") or {}).get(QUEUE_LABEL),
        "root": (given.get("annotations") or {}).get(argo.ROOT_ANNOTATION),
        "storageSecret": (given.get("annotations") or {}).get(argo.STORE_ANNOTATION),
    }
    found = {key: value for key, value in wanted.items() if value}
    types = dict.fromkeys(parameters(first["spec"].get("arguments"), "spec.arguments"), "STRING")
    return meta, {**spec, **found}, types


def _prefix(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] + "-"


def _parameter(text: str, types: dict[str, str]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise BadInput(f"--parameter {text}: is not NAME=VALUE")
    kind = types.get(name)
    if kind == "STRING":
        return name, value
    try:
        found = json.loads(value)
    except ValueError:
        if kind is not None:
            raise BadInput(f"--parameter {text}: is no {kind} in JSON") from None
        found = value
    return name, found
