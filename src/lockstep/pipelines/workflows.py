"""The controller of Argo's Workflows: a run is made of each, and its status comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, CRDS, AnyObject
from lockstep.api.meta import owned_by, owner_reference
from lockstep.api.names import QUEUE_LABEL
from lockstep.api.pipeline import PIPELINE_RUNS, PipelineRun, PipelineRunSpec, StepStatus
from lockstep.api.validation import Problem
from lockstep.api.wire import Json, convert
from lockstep.compat.argo import config_maps
from lockstep.compat.argo.objects import CLUSTER_WORKFLOW_TEMPLATES, WORKFLOW_TEMPLATES, WORKFLOWS
from lockstep.compat.argo.status import status
from lockstep.compat.argo.translate import ROOT_ANNOTATION, STORE_ANNOTATION, spec
from lockstep.compat.foreign_kinds import DIALECT_LABEL
from lockstep.compat.translation import MANAGED_ANNOTATION, Refused
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.events import Recorder, reference
from lockstep.kube.informer import Informer
from lockstep.pipelines.core.check import problems
from lockstep.pipelines.core.record import steps_of
from lockstep.runtime.actions import Create
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.execution import execute
from lockstep.runtime.manager import Manager
from lockstep.runtime.status import write_status

_OVER: Final = frozenset({"Succeeded", "Failed", "Error"})
_ASK_AGAIN: Final = 30.0


@dataclass
class WorkflowController:
    """Brings each workflow to its end by a run of ours."""

    client: Client
    workflows: Informer[AnyObject]
    templates: Informer[AnyObject]
    cluster_templates: Informer[AnyObject]
    runs: Informer[PipelineRun]
    recorder: Recorder
    clock: Callable[[], float] = time.time
    _asked: tuple[float, bool] = (0.0, False)

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the workflow at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        found = self.workflows.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        if not await self._ours(found):
            return None
        if found.status.get("phase") in _OVER:
            return await self._expire(found)
        return await self._serve(found)

    async def _ours(self, found: AnyObject) -> bool:
        """Say whether a workflow is Lockstep's to run: where Argo is installed it is not."""
        said = found.metadata.annotations.get(MANAGED_ANNOTATION)
        if said is not None:
            return said == "true"
        until, known = self._asked
        if self.clock() < until:
            return known
        try:
            crd = await self.client.get(CRDS, f"{WORKFLOWS.plural}.{WORKFLOWS.group}")
            known = DIALECT_LABEL in crd.metadata.labels
        except (NotFound, Forbidden):
            known = False
        self._asked = (self.clock() + _ASK_AGAIN, known)
        return known

    async def _serve(self, workflow: AnyObject) -> float | None:
        meta = workflow.metadata
        run = self.runs.get(meta.namespace, meta.name)
        wrong: list[Problem] = []
        steps: Mapping[str, StepStatus] = {}
        if run is not None and not owned_by(run, workflow):
            wrong = [Problem("metadata.name", meta.name, "a PipelineRun of that name is there")]
        elif run is None:
            wrong = await self._start(workflow)
        else:
            steps = steps_of(run.status)
            await self._pass_on(workflow, run)
        told = status(meta.name, run, steps, wrong)
        if wrong:
            now = timestamp.show(self.clock())
            told |= {"startedAt": now, "finishedAt": now}
            self.recorder.event(
                reference(WORKFLOWS, meta), "Warning", "Refused", told["message"][:1000]
            )
        await write_status(self.client, WORKFLOWS, workflow, told)
        return None

    async def _start(self, workflow: AnyObject) -> list[Problem]:
        meta = workflow.metadata
        try:
            made = self.run_of(workflow, await self._config_maps(workflow))
            found = problems(convert(made["spec"], PipelineRunSpec))
        except Refused as refused:
            return [refused.problem]
        except msgspec.ValidationError as error:
            return [Problem("spec", None, str(error))]
        if found:
            return found
        refusal = await execute(self.client, Create(PIPELINE_RUNS, made), meta.namespace)
        return [Problem("spec", None, str(refusal))] if refusal else []

    async def _config_maps(self, workflow: AnyObject) -> dict[str, Mapping[str, str]]:
        """Return the content of the ConfigMaps that parameters of *workflow* refer to."""
        space = workflow.metadata.namespace
        found: dict[str, Mapping[str, str]] = {}
        names = config_maps.named(workflow.spec)
        reference = workflow.spec.get("workflowTemplateRef")
        if reference:
            names |= config_maps.named(self._template(space, reference) or {})
        for name in sorted(names):
            try:
                one = await self.client.get(CONFIG_MAPS, name, space)
            except NotFound:
                continue
            if one.metadata.labels.get(config_maps.TYPE_LABEL) == "Parameter":
                found[name] = one.data
        return found

    def _template(self, namespace: str, reference: Json) -> Json | None:
        cluster = bool(reference.get("clusterScope"))
        cache = self.cluster_templates if cluster else self.templates
        found = cache.get("" if cluster else namespace, str(reference.get("name")))
        return None if found is None else found.spec

    def run_of(
        self, workflow: AnyObject, held: Mapping[str, Mapping[str, str]] | None = None
    ) -> Json:
        """Return the run that is made of *workflow*; ConfigMaps hold *held*.

        Raises:
            Refused: when something in it is not honoured here.
        """
        meta = workflow.metadata

        def lookup(name: str, cluster: bool) -> Json | None:
            found = self._template(meta.namespace, {"name": name, "clusterScope": cluster})
            return None if found is None else config_maps.filled(found, held or {})

        whole = config_maps.filled(workflow.spec, held or {})
        about = {"labels": meta.labels, "annotations": meta.annotations}
        made = spec(whole, lookup, about)
        if queue := meta.labels.get(QUEUE_LABEL):
            made["queue"] = queue
        for field, annotation in (("root", ROOT_ANNOTATION), ("storageSecret", STORE_ANNOTATION)):
            if value := meta.annotations.get(annotation):
                made[field] = value
        owner = owner_reference(workflow, WORKFLOWS)
        return {"metadata": {"name": meta.name, "ownerReferences": [owner]}, "spec": made}

    async def _pass_on(self, workflow: AnyObject, run: PipelineRun) -> None:
        """Tell the run what was changed of the workflow: whether it waits or stops."""
        wanted = "Running"
        if workflow.spec.get("shutdown"):
            wanted = "Stopped"
        elif workflow.spec.get("suspend"):
            wanted = "Suspended"
        if run.spec.desired != wanted and run.status.completion_time is None:
            body = {"spec": {"desired": wanted}}
            meta = run.metadata
            await self.client.patch(PIPELINE_RUNS, meta.name, body, meta.namespace)

    async def _expire(self, workflow: AnyObject) -> float | None:
        """Delete a workflow whose time after its end is over; return when that is."""
        ttl = workflow.spec.get("ttlStrategy") or {}
        good = workflow.status.get("phase") == "Succeeded"
        after = ttl.get(
            "secondsAfterSuccess" if good else "secondsAfterFailure",
            ttl.get("secondsAfterCompletion"),
        )
        end = workflow.status.get("finishedAt")
        if after is None or end is None:
            return None
        left = timestamp.parse(end) + float(after) - self.clock()
        if left > 0:
            return left
        meta = workflow.metadata
        await self.client.delete(
            WORKFLOWS, meta.name, meta.namespace, uid=meta.uid, propagation="Background"
        )
        return None


def add_workflows(manager: Manager) -> None:
    """Run the controller of workflows while *manager* leads."""
    workflows = manager.informer(WORKFLOWS, optional=True)
    templates = manager.informer(WORKFLOW_TEMPLATES, optional=True)
    cluster_templates = manager.informer(CLUSTER_WORKFLOW_TEMPLATES, optional=True)
    runs = manager.informer(PIPELINE_RUNS)
    shell = WorkflowController(
        manager.client, workflows, templates, cluster_templates, runs, manager.recorder()
    )
    controller = Controller("workflow", shell.reconcile, workers=4)
    controller.follow(workflows)
    controller.follow(runs)
    manager.add(controller)
