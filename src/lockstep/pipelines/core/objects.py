"""Steps that are other objects: which kinds may be made, and when they have come to an end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import CONFIG_MAPS, AnyObject
from lockstep.api.creator_policy import unsigned
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import GROUP, QUEUE_LABEL, VERSION
from lockstep.api.pipeline import PIPELINE_RUNS, RUN_LABEL, STEP_ANNOTATION, ObjectStep
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.nodes import Node, there
from lockstep.pipelines.core.pods import object_name
from lockstep.pipelines.core.told import Seen
from lockstep.pipelines.core.values import BadExpression, evaluate, render

_PHASE: Final = "has(object.status) && has(object.status.phase) && object.status.phase == '{}'"
_CONDITION: Final = (
    "has(object.status) && has(object.status.conditions) && object.status.conditions"
    ".exists(c, c.type == '{}' && c.status == 'True')"
)


def _within(path: str, *words: str) -> str:
    """Return the rule that the field at *path* of an object is there and one of *words*."""
    parts = path.split(".")
    there = [f"has(object.{'.'.join(parts[: n + 1])})" for n in range(len(parts))]
    return " && ".join([*there, f"object.{path} in {list(words)}"])


_READY: Final = (
    _CONDITION.format("Ready") + " && (!has(object.status.observedGeneration)"
    " || object.status.observedGeneration == object.metadata.generation)"
)


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind that a step may make, and what its end looks like."""

    resource: Resource[AnyObject]
    success: str = "true"
    failure: str = "false"
    watched: bool = True
    """Whether it is followed; else it is over once it is written."""
    queue: str = ""
    """Field of its spec that names its queue."""


def _any(group: str, version: str, plural: str, kind: str) -> Resource[AnyObject]:
    return Resource(group, version, plural, kind, True, AnyObject)


KINDS: Final[tuple[StepKind, ...]] = (
    StepKind(
        _any(GROUP, VERSION, "trainingjobs", "TrainingJob"),
        _PHASE.format("Succeeded"),
        _PHASE.format("Failed"),
        queue="queue",
    ),
    StepKind(
        _any(GROUP, VERSION, PIPELINE_RUNS.plural, PIPELINE_RUNS.kind),
        _PHASE.format("Succeeded"),
        "has(object.status) && has(object.status.phase) && "
        "object.status.phase in ['Failed', 'Stopped']",
        queue="queue",
    ),
    StepKind(_any(GROUP, VERSION, MODEL_VERSIONS.plural, MODEL_VERSIONS.kind), watched=False),
    StepKind(_any("", "v1", CONFIG_MAPS.plural, CONFIG_MAPS.kind), watched=False),
    StepKind(
        _any("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"),
        _CONDITION.format("Succeeded"),
        _CONDITION.format("Failed"),
    ),
    StepKind(_any("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService"), _READY),
    *(
        StepKind(
            _any("kubeflow.org", version, plural, kind),
            _CONDITION.format("Succeeded"),
            _CONDITION.format("Failed"),
        )
        for version, plural, kind in (
            ("v1", "tfjobs", "TFJob"),
            ("v1", "xgboostjobs", "XGBoostJob"),
            ("v2beta1", "mpijobs", "MPIJob"),
        )
    ),
    StepKind(
        _any("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
        _CONDITION.format("Complete"),
        _CONDITION.format("Failed"),
    ),
    StepKind(
        _any("batch", "v1", "jobs", "Job"),
        _CONDITION.format("Complete"),
        _CONDITION.format("Failed"),
    ),
    StepKind(
        _any("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
        _CONDITION.format("Completed"),
        _CONDITION.format("Failed"),
    ),
    StepKind(
        _any("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
        _within("status.state.phase", "Completed"),
        _within("status.state.phase", "Failed", "Aborted", "Terminated"),
    ),
    StepKind(
        _any("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"),
        _within("status.applicationState.state", "COMPLETED"),
        _within("status.applicationState.state", "FAILED"),
    ),
    # It is over once it is written: the runs that it makes are its own.
    StepKind(
        _any(
            "sparkoperator.k8s.io",
            "v1beta2",
            "scheduledsparkapplications",
            "ScheduledSparkApplication",
        ),
        watched=False,
    ),
    StepKind(
        _any("flink.apache.org", "v1beta1", "flinkdeployments", "FlinkDeployment"),
        _within("status.jobStatus.state", "FINISHED"),
        _within("status.jobStatus.state", "FAILED", "CANCELED"),
    ),
    StepKind(
        _any("ray.io", "v1", "rayjobs", "RayJob"),
        _within("status.jobStatus", "SUCCEEDED"),
        _within("status.jobStatus", "FAILED", "STOPPED"),
    ),
    StepKind(
        _any("argoproj.io", "v1alpha1", "workflows", "Workflow"),
        _within("status.phase", "Succeeded"),
        _within("status.phase", "Failed", "Error"),
    ),
    StepKind(
        _any("data.fluid.io", "v1alpha1", "dataloads", "DataLoad"),
        _PHASE.format("Complete"),
        _PHASE.format("Failed"),
    ),
)
"""What steps may make: no other kind, since the controllers write with their own rights."""


def kind_of(tree: Mapping[str, Any]) -> StepKind:
    """Return the kind of the manifest *tree*.

    Raises:
        BadExpression: when a step may make no such object; the message says which it may.
    """
    wanted = (tree.get("apiVersion"), tree.get("kind"))
    for one in KINDS:
        if wanted == (one.resource.api_version, one.resource.kind):
            return one
    known = ", ".join(f"{k.resource.kind} ({k.resource.api_version})" for k in KINDS)
    raise BadExpression(f"{wanted[1]} ({wanted[0]}): a step may be one of {known}")


def build(engine: Engine, node: Node) -> tuple[StepKind, ObjectStep, Json]:
    """Return the object of the present try of *node*, and what is to be done with it.

    Raises:
        BadExpression: when it refers to what there is not, or is of no kind that a step may be.
    """
    step = there(node.template.object)
    name = object_name(engine.run.name, engine.run.uid, node.id, node.attempt)
    about = {"name": node.task.name, "id": node.id, "attempt": node.attempt, "object": name}
    tree = render(step.object, {**engine.variables(node), "step": about})
    kind = kind_of(tree)
    meta = dict(tree.get("metadata") or {})
    if (space := meta.pop("namespace", None)) not in (None, engine.run.namespace):
        raise BadExpression(f"metadata.namespace: {space!r} is not that of the run; leave it out")
    meta.pop("generateName", None)
    if step.action == "Create":
        meta["name"] = meta.get("name") or name
    elif not meta.get("name"):
        raise BadExpression(f"metadata.name: {step.action} needs one")
    if step.action in ("Create", "Apply"):
        meta["labels"] = {**(meta.get("labels") or {}), RUN_LABEL: engine.run.name}
        mark = f"{engine.run.uid}/{node.id}/{node.attempt}"
        meta["annotations"] = {**unsigned(meta.get("annotations") or {}), STEP_ANNOTATION: mark}
        spec = tree.get("spec")
        if kind.queue and isinstance(spec, dict):
            spec.setdefault(kind.queue, engine.spec.queue)
        elif kind.watched and not kind.queue:
            meta["labels"].setdefault(QUEUE_LABEL, engine.spec.queue)
    return kind, step, {**tree, "metadata": meta}


def judge(kind: StepKind, node: Node, tree: Json) -> Seen:
    """Return how the step that *tree* is does."""
    step = there(node.template.object)
    seen = {"object": tree, "inputs": node.inputs}
    try:
        if _holds(step.failure or kind.failure, seen):
            return Seen("Failed", _words(tree))
        if _holds(step.success or kind.success, seen):
            outputs = {name: render(v, seen) for name, v in node.template.outputs.items()}
            return Seen("Succeeded", outputs=outputs)
    except BadExpression as error:
        return Seen("Failed", str(error))
    return Seen("Running", _words(tree))


def _holds(text: str, seen: Mapping[str, Any]) -> bool:
    found = evaluate(text, seen)
    if not isinstance(found, bool):
        raise BadExpression(f"{text!r}: is neither true nor false")
    return found


def _words(tree: Json) -> str:
    status = tree.get("status") or {}
    message = str(status.get("message") or "")
    if not message:
        conditions = status.get("conditions") or []
        # What went wrong comes before what is not so yet.
        failed = [c for c in conditions if c.get("type") == "Failed" and c.get("status") == "True"]
        found = failed or [c for c in conditions if c.get("status") != "True"]
        message = "; ".join(str(c["message"]) for c in found if c.get("message"))
    phase = str(status.get("phase") or "")
    return f"{phase}: {message}".strip(": ")[:500]
