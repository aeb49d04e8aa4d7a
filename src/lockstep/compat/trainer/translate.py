"""TrainJobs: the runtime's JobSet with what the job says in its place, and its framework.

Facts: kubeflow/trainer:pkg/runtime.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat.jobset import translate as jobsets
from lockstep.compat.trainer.kinds import CLUSTER_RUNTIME, GROUP, RUNTIME
from lockstep.compat.trainer.objects import (
    PodOverride,
    Policy,
    RuntimePatch,
    RuntimeSpec,
    Source,
    TargetJob,
    Template,
    Trainer,
    TrainJobSpec,
)
from lockstep.compat.trainer.runtimes import NODE, STEP, built_in
from lockstep.compat.translation import Look, Refused, Translation, read

MANAGER: Final = "trainer.kubeflow.org/trainjob-controller"
_INITIALIZERS: Final = {"dataset": "dataset-initializer", "model": "model-initializer"}
_FRAMEWORKS: Final = {"torch": "pytorch", "mpi": "mpi", "jax": "jax", "xgboost": "xgboost"}
_LISTS: Final = ("volumes", "tolerations", "imagePullSecrets", "schedulingGates")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job says over its runtime."""

    spec: TrainJobSpec
    policy: Policy

    @property
    def trainer(self) -> Trainer:
        """What the nodes run."""
        return self.spec.trainer or Trainer()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.trainer.num_nodes or self.policy.num_nodes or 1

    @property
    def framework(self) -> str:
        """The runtime's policy by which nodes find together; empty for none."""
        return next((f for f in _FRAMEWORKS if getattr(self.policy, f) is not None), "")


def to_native(obj: AnyObject, look: Look) -> Translation:
    """Return *obj* as a TrainingJob; *look* finds its runtime.

    Raises:
        Refused: when something in it, or in its runtime, cannot be honoured.
    """
    spec = read(obj.spec, TrainJobSpec)
    runtime = _runtime(obj, spec, look)
    wanted = Wanted(spec, runtime.ml_policy or Policy())
    jobs: list[Json] = copy.deepcopy(runtime.template.spec.get("replicatedJobs") or [])
    for i, job in enumerate(jobs):
        _fill(job, f"(runtime).template.spec.replicatedJobs[{i}]", wanted)
    _override(jobs, spec.pod_template_overrides, "spec.podTemplateOverrides")
    labels, annotations = dict(spec.labels), dict(spec.annotations)
    for i, one in enumerate(spec.runtime_patches):
        _patch(jobs, one, f"spec.runtimePatches[{i}].trainingRuntimeSpec.template")
        about = one.training_runtime_spec.template.metadata
        labels |= about.get("labels") or {}
        annotations |= about.get("annotations") or {}
    meta = obj.metadata
    set_ = structs.replace(
        obj,
        metadata=structs.replace(
            meta,
            labels={**meta.labels, **labels},
            annotations={**meta.annotations, **annotations},
        ),
        spec={
            **{k: v for k, v in runtime.template.spec.items() if k != "replicatedJobs"},
            "replicatedJobs": jobs,
            **({"suspend": spec.suspend} if spec.suspend is not None else {}),
        },
    )
    native, *claims = jobsets.to_native(set_).objects
    _finish(native, wanted)
    if spec.active_deadline_seconds is not None:
        native["spec"]["runPolicy"]["activeDeadline"] = f"{spec.active_deadline_seconds}s"
    return Translation((native, *claims))


def _runtime(obj: AnyObject, spec: TrainJobSpec, look: Look) -> RuntimeSpec:
    ref = spec.runtime_ref
    if ref.api_group != GROUP:
        raise Refused("spec.runtimeRef.apiGroup", ref.api_group, f"must be {GROUP}")
    kind = CLUSTER_RUNTIME if ref.kind == CLUSTER_RUNTIME.kind else RUNTIME
    found = look(kind, obj.metadata.namespace if kind.namespaced else "", ref.name)
    tree = found.spec if found is not None else None
    if tree is None and kind is CLUSTER_RUNTIME:
        tree = built_in(ref.name)
    if tree is None:
        raise Refused("spec.runtimeRef.name", ref.name, f"there is no {ref.kind} of that name yet")
    try:
        return read(tree, RuntimeSpec)
    except Refused as refused:
        wrong = refused.problem
        place = f"spec.runtimeRef.name ({ref.kind} {ref.name}: {wrong.field})"
        raise Refused(place, wrong.given, wrong.allowed) from None


def _fill(job: Json, at: str, wanted: Wanted) -> None:
    """Put what the job says into a replicated job of its runtime."""
    template = job.get("template")
    if not isinstance(template, dict):
        raise Refused(f"spec.runtimeRef.name ({at}.template)", None, "is needed")
    inner = template.setdefault("spec", {})
    labels = (template.get("metadata") or {}).get("labels") or {}
    step = labels.get(STEP) or job.get("name")
    containers = inner.get("template", {}).get("spec", {}).get("containers") or []
    initializer = wanted.spec.initializer
    for field, name in _INITIALIZERS.items():
        source = getattr(initializer, field) if initializer else None
        if step == name and source is not None:
            _fetch(containers, name, source)
    if job.get("name") == NODE or (step == "trainer" and not wanted.policy.mpi):
        inner["parallelism"] = inner["completions"] = wanted.nodes
    if job.get("name") == NODE or step == "trainer":
        inner["completionMode"] = "Indexed"
        for container in containers:
            if container.get("name") == NODE:
                _train(container, wanted.trainer, runs=step == "trainer")


def _train(container: Json, trainer: Trainer, *, runs: bool) -> None:
    """Put what the job says into the container of a node; *runs*: it runs the command."""
    if trainer.image:
        container["image"] = trainer.image
    if trainer.resources_per_node is not None:
        container["resources"] = trainer.resources_per_node
    for key, value in (("command", trainer.command), ("args", trainer.args)):
        if value and runs:
            container[key] = value
    _merge_env(container, trainer.env)


def _fetch(containers: list[Json], name: str, source: Source) -> None:
    for container in containers:
        if container.get("name") != name:
            continue
        told = [{"name": "STORAGE_URI", "value": source.storage_uri}] if source.storage_uri else []
        _merge_env(container, [*told, *source.env])
        if source.secret_ref is not None:
            known = container.get("envFrom") or []
            container["envFrom"] = [*known, {"secretRef": source.secret_ref}]


def _merge_env(container: Json, more: list[Json]) -> None:
    names = {one.get("name") for one in more}
    kept = [one for one in container.get("env") or [] if one.get("name") not in names]
    if kept or more:
        container["env"] = [*kept, *more]


def _patch(jobs: list[Json], patch: RuntimePatch, at: str) -> None:
    """Change the pods of the jobs that *patch* names; what it says of a Job no pod has."""
    at = f"{at}.spec.replicatedJobs"
    for i, one in enumerate(patch.training_runtime_spec.template.spec.replicated_jobs):
        where = f"{at}[{i}].template.spec"
        for field in one.template.spec:
            if field != "template":
                raise Refused(f"{where}.{field}", None, "is the runtime's to say; leave it out")
        pod = read(one.template.spec.get("template") or {}, Template, f"{where}.template")
        target = PodOverride([TargetJob(one.name)], pod.metadata, pod.spec)
        _override(jobs, [target], f"{where}.template", f"{at}[{i}].name")


def _override(jobs: list[Json], overrides: list[PodOverride], list_: str, name: str = "") -> None:
    """Change the pods that *overrides*, at the field *list_*, are about; *name* is its own."""
    by_name = {job.get("name"): job for job in jobs}
    for i, one in enumerate(overrides):
        at = list_ if name else f"{list_}[{i}]"
        for k, target in enumerate(one.target_jobs):
            if target.name not in by_name:
                known = ", ".join(str(name) for name in by_name)
                field = name or f"{at}.targetJobs[{k}].name"
                raise Refused(field, target.name, f"must be of: {known}")
            pod = by_name[target.name]["template"]["spec"].setdefault("template", {})
            for field in ("labels", "annotations"):
                if told := one.metadata.get(field):
                    meta = pod.setdefault("metadata", {})
                    meta[field] = {**(meta.get(field) or {}), **told}
            _override_spec(pod.setdefault("spec", {}), one.spec, f"{at}.spec")


def _override_spec(pod: Json, given: Json, at: str) -> None:
    for field, value in given.items():
        if field in ("containers", "initContainers"):
            _override_containers(pod, field, value, at)
        elif field in _LISTS:
            names = {one.get("name") for one in value if one.get("name")}
            kept = [o for o in pod.get(field) or [] if o.get("name") not in names]
            pod[field] = [*kept, *value]
        elif field == "nodeSelector":
            pod[field] = {**(pod.get(field) or {}), **value}
        else:
            pod[field] = value


def _override_containers(pod: Json, field: str, given: list[Json], at: str) -> None:
    by_name = {one.get("name"): one for one in pod.get(field) or []}
    for k, more in enumerate(given):
        name = more.get("name")
        if name not in by_name:
            known = ", ".join(str(one) for one in by_name)
            raise Refused(f"{at}.{field}[{k}].name", name, f"must be of: {known}")
        own = by_name[name]
        _merge_env(own, more.get("env") or [])
        mounts = own.get("volumeMounts") or []
        own["volumeMounts"] = [*mounts, *(more.get("volumeMounts") or [])]
        own |= {k: v for k, v in more.items() if k not in ("name", "env", "volumeMounts")}


def _finish(native: Json, wanted: Wanted) -> None:
    """Make it a job of its framework: the nodes first, which hold the ranks."""
    spec, framework = native["spec"], wanted.framework
    if not framework:
        return
    roles = sorted(spec["roles"], key=lambda role: role["name"] != NODE)
    node = roles[0]
    if node["name"] != NODE:
        raise Refused("spec.runtimeRef.name", None, f"the runtime has no replicated job {NODE}")
    spec["framework"], spec["roles"] = _FRAMEWORKS[framework], roles
    if (processes := _processes(wanted)) is not None:
        node["processesPerNode"] = processes
    told: dict[str, str] = {}
    if framework == "mpi":
        spec["roles"] = _launched(roles)
    elif len(roles) > 1:
        # The others are none of its ranks.
        told = _counted(framework, wanted.nodes, processes or 1)
        spec.setdefault("successPolicy", {"roles": [NODE]})
    if framework == "torch":
        name = native["metadata"]["name"]
        told |= {"PET_NPROC_PER_NODE": str(_stated(wanted)), "PET_NNODES": str(wanted.nodes)}
        told |= {"PET_NODE_RANK": "{member}", "PET_MASTER_ADDR": f"{name}-{NODE}-0-0.{name}"}
    if told:
        node["identity"].setdefault("env", {}).update(told)


def _launched(roles: list[Json]) -> list[Json]:
    """Return a launcher and its workers; their order is the launcher's, which waits for them."""
    by_name = {role["name"]: role for role in roles}
    if sorted(by_name) != ["launcher", NODE]:
        raise Refused("spec.runtimeRef.name", None, f"needs replicated jobs launcher and {NODE}")
    by_name[NODE]["name"] = "worker"
    for role in roles:
        role.pop("after", None)
    return [by_name["launcher"], by_name[NODE]]


def _counted(framework: str, nodes: int, processes: int) -> dict[str, str]:
    world = str(nodes * processes)
    if framework == "jax":
        return {"JAX_NUM_PROCESSES": str(nodes), "NUM_PROCESSES": str(nodes)}
    if framework == "xgboost":
        return {"DMLC_NUM_WORKER": str(nodes), "WORLD_SIZE": world}
    return {"WORLD_SIZE": world}


def _stated(wanted: Wanted) -> str | int:
    own = wanted.policy.torch.num_proc_per_node if wanted.policy.torch else None
    return wanted.trainer.num_proc_per_node or own or "auto"


def _processes(wanted: Wanted) -> int | None:
    """Return the processes of a node; None: one for each GPU."""
    policy = wanted.policy
    stated: str | int | None = wanted.trainer.num_proc_per_node
    if stated is None and policy.torch is not None:
        stated = policy.torch.num_proc_per_node
    if stated is None and policy.mpi is not None:
        stated = policy.mpi.num_proc_per_node
    if stated in (None, "auto", "gpu", "cpu"):
        return None
    if str(stated).isdecimal() and int(stated or 0) > 0:
        return int(stated or 0)
    allowed = "must be auto, gpu, cpu or a whole number from 1"
    raise Refused("spec.trainer.numProcPerNode", stated, allowed)
