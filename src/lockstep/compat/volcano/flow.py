"""Volcano's flows: each step is a job of a JobTemplate, which comes after those that it names.

Facts: volcano-sh/apis:pkg/apis/flow/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Final, Literal

from msgspec import Meta, structs

from lockstep.api.core import AnyObject
from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.translation import Look, Native, Refused, Strict, Translation, read
from lockstep.compat.volcano import job
from lockstep.compat.volcano.kinds import JOB, TEMPLATE
from lockstep.compat.volcano.status import PHASES

_LISTS: Final = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Restarting": "runningJobs",
    "Completed": "completedJobs",
    "Failed": "failedJobs",
    "Terminating": "terminatedJobs",
    "Aborted": "terminatedJobs",
}
"""In which list of a flow's status a job of each phase is named."""


class Target(Strict, frozen=True):
    """A step that goes before, and how far it must be."""

    name: str
    phase: str = "Completed"


class DependsOn(Strict, frozen=True):
    """Steps that go before."""

    targets: list[str] = []
    targets_with_status: list[Target] = []
    probe: Json | None = None


class Flow(Strict, frozen=True):
    """One step: the JobTemplate of its name."""

    name: Annotated[str, Meta(min_length=1)]
    depends_on: DependsOn | None = None


class FlowSpec(Strict, frozen=True):
    """What a JobFlow says."""

    flows: Annotated[list[Flow], Meta(min_length=1)]
    job_retain_policy: Literal["retain", "delete"] = "retain"


def to_native(obj: AnyObject, look: Look) -> Translation:
    """Return *obj* as a TrainingJob a step; *look* finds its templates.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, FlowSpec)
    before = {flow.name: _before(flow, f"spec.flows[{i}]") for i, flow in enumerate(spec.flows)}
    _ordered(spec, before)
    made = [
        body
        for i, flow in enumerate(spec.flows)
        for body in _step(obj, flow, before[flow.name], look, f"spec.flows[{i}].name")
    ]
    return Translation(tuple(made))


def names(obj: AnyObject) -> list[str]:
    """Return what the jobs of a flow are called: ``FLOW-STEP``."""
    flows = obj.spec.get("flows")
    listed = flows if isinstance(flows, list) else []
    found = [one.get("name") for one in listed if isinstance(one, dict)]
    return [f"{obj.metadata.name}-{name}" for name in found if isinstance(name, str)]


def drops(obj: AnyObject) -> bool:
    """Say whether the jobs of a flow that is over are to be deleted."""
    phase = _state(obj).get("phase")
    return phase == "Succeed" and obj.spec.get("jobRetainPolicy") == "delete"


def ended(obj: AnyObject) -> bool:
    """Say whether the flow is over."""
    return _state(obj).get("phase") in ("Succeed", "Failed")


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    if ended(obj):
        return obj.status  # its jobs may be deleted by now, one after the other
    jobs = {one.metadata.name: one for one in natives if isinstance(one, TrainingJob)}
    wanted = names(obj)
    phases = {name: PHASES[jobs[name].status.phase] for name in wanted if name in jobs}
    status: Json = {}
    for name, phase in phases.items():
        status.setdefault(_LISTS[phase], []).append(name)
    state: Json = {"phase": _phase(phases, len(wanted))}
    if wrong:
        state |= {"reason": "Refused", "message": "; and ".join(map(str, wrong))}
    status["state"] = state
    if listed := [_listed_job(jobs[name], phase) for name, phase in phases.items()]:
        status["jobStatusList"] = listed
    return status


def _before(flow: Flow, at: str) -> list[str]:
    wish = flow.depends_on
    if wish is None:
        return []
    if wish.probe and any(wish.probe.values()):
        remedy = "probes are not served: a step comes once those before have completed"
        raise Refused(f"{at}.dependsOn.probe", None, remedy)
    for k, one in enumerate(wish.targets_with_status):
        if one.phase != "Completed":
            field = f"{at}.dependsOn.targetsWithStatus[{k}].phase"
            raise Refused(field, one.phase, "must be Completed")
    return [*wish.targets, *(one.name for one in wish.targets_with_status)]


def _ordered(spec: FlowSpec, before: dict[str, list[str]]) -> None:
    if len(before) != len(spec.flows):
        raise Refused("spec.flows", None, "must have steps of different names")
    for i, flow in enumerate(spec.flows):
        for name in before[flow.name]:
            if name not in before:
                allowed = f"must be steps of the flow: {', '.join(before)}"
                raise Refused(f"spec.flows[{i}].dependsOn.targets", name, allowed)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        raise Refused("spec.flows", " after ".join(error.args[1]), "must have no cycle") from None


def _step(obj: AnyObject, flow: Flow, before: list[str], look: Look, at: str) -> list[Json]:
    meta = obj.metadata
    template = look(TEMPLATE, meta.namespace, flow.name)
    if template is None:
        raise Refused(at, flow.name, "there is no JobTemplate of that name (yet)")
    about = structs.replace(meta, name=f"{meta.name}-{flow.name}", labels={}, annotations={})
    one = AnyObject(
        metadata=about, spec=template.spec, api_version=f"{JOB.group}/{JOB.version}", kind=JOB.kind
    )
    try:
        made, *more = job.to_native(one).objects
    except Refused as refused:
        problem = refused.problem
        field = f"JobTemplate {flow.name}: {problem.field}"
        raise Refused(field, problem.given, problem.allowed) from None
    if before:
        made["spec"]["after"] = [f"{meta.name}-{name}" for name in before]
    made["metadata"]["labels"] = {
        "volcano.sh/createdByJobFlow": f"{meta.namespace}.{meta.name}",
        "volcano.sh/createdByJobTemplate": f"{meta.namespace}.{flow.name}",
    }
    return [made, *more]


def _phase(phases: dict[str, str], wanted: int) -> str:
    there = list(phases.values())
    if "Failed" in there:
        return "Failed"
    if wanted and there.count("Completed") == wanted:
        return "Succeed"
    if "Terminating" in there:
        return "Terminating"
    return "Running" if any(one != "Pending" for one in there) else "Pending"


def _listed_job(one: TrainingJob, phase: str) -> Json:
    told = {
        "name": one.metadata.name,
        "state": phase,
        "startTimestamp": one.status.start_time,
        "endTimestamp": one.status.completion_time,
        "restartCount": one.status.restarts,
    }
    return {key: value for key, value in told.items() if value}


def _state(obj: AnyObject) -> Json:
    state = obj.status.get("state")
    return state if isinstance(state, dict) else {}
