"""A LeaderWorkerSet as an InferenceService whose replicas are gangs."""

from __future__ import annotations

import copy
from typing import Final

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json, Wire, convert
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.way import PROBE_ANNOTATION

NAME_LABEL: Final = "leaderworkerset.sigs.k8s.io/name"
_RESTARTS: Final = ("", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "Default")


class Template(Wire, frozen=True):
    """The pods of one replica."""

    leader_template: Json | None = None
    worker_template: Json = {}
    size: int = 1
    restart_policy: str = ""


class LwsSpec(Wire, frozen=True):
    """Replicas that are several pods each."""

    replicas: int = 1
    leader_worker_template: Template = Template()
    startup_policy: str = ""


def services(obj: AnyObject) -> list[Json]:
    """Return the InferenceService that *obj* becomes: name, annotations and spec.

    Raises:
        Problem: when something in it cannot be honoured.
    """
    try:
        spec = convert(obj.spec, LwsSpec)
    except msgspec.ValidationError as error:
        raise Problem("spec", "...", str(error)) from None
    where, given = "spec.leaderWorkerTemplate", spec.leader_worker_template
    if spec.replicas < 0 or given.size < 1:
        field = "spec.replicas" if spec.replicas < 0 else f"{where}.size"
        value = min(spec.replicas, given.size)
        raise Problem(field, value, "a whole number is needed: replicas from 0, size from 1")
    if given.restart_policy not in _RESTARTS:
        raise Problem(f"{where}.restartPolicy", given.restart_policy, f"one of {_RESTARTS[1:]}")
    if not (given.worker_template.get("spec") or {}).get("containers"):
        raise Problem(f"{where}.workerTemplate", "...", "a pod with containers is needed")
    worker = copy.deepcopy(given.worker_template)
    leader = copy.deepcopy(given.leader_template or given.worker_template)
    meta = leader.get("metadata") or {}
    predictor: Json = {
        **leader.get("spec", {}),
        "minReplicas": spec.replicas,
        "maxReplicas": max(1, spec.replicas),
        "labels": {**(meta.get("labels") or {}), NAME_LABEL: obj.metadata.name},
        "annotations": meta.get("annotations") or {},
    }
    if given.size > 1:
        predictor["workerSpec"] = {**worker["spec"], "pipelineParallelSize": given.size}
    # What a leader does not say about its readiness is that its container runs.
    annotations = {PROBE_ANNOTATION: "none"}
    if spec.replicas == 0:
        annotations["serving.kserve.io/stop"] = "true"
    spec_: Json = {"predictor": predictor}
    return [{"name": obj.metadata.name, "annotations": annotations, "spec": spec_}]
