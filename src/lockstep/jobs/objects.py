"""The objects that a job consists of, as they are sent to the server."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from msgspec import structs

from lockstep.api import duration
from lockstep.api.core import CONFIG_MAPS, PODS, SECRETS, SERVICES
from lockstep.api.creator_policy import handed_on
from lockstep.api.gang import GANGS, Gang, GangGroup, GangSpec
from lockstep.api.imageless import fill_in
from lockstep.api.meta import ObjectMeta, owner_reference
from lockstep.api.names import (
    ATTEMPT_LABEL,
    GANG_GROUP_LABEL,
    GANG_LABEL,
    INDEX_LABEL,
    JOB_LABEL,
    MAX_WAIT_ANNOTATION,
    QUEUE_LABEL,
    RANK_ANNOTATION,
    ROLE_LABEL,
    RUNTIME_ANNOTATION,
    SCHEDULER_NAME,
    SIMULATED_LABEL,
    SIZE_ANNOTATION,
)
from lockstep.api.roles import group_of, launched, least, on_spot, processes, ranked, service_name
from lockstep.api.simulated import send_to_simulated
from lockstep.api.spot import SPOT_SUFFIX, keep
from lockstep.api.training import TRAINING_JOBS, Role, TrainingJob
from lockstep.api.wire import Json, to_builtins
from lockstep.jobs import code, devices, failures, launcher, ssh
from lockstep.jobs.frameworks.base import (
    CONFIG_SUFFIX,
    SSH_SUFFIX,
    Framework,
    Member,
    environment,
    merge_environment,
    own,
    size,
)
from lockstep.jobs.order import open_roles


def pod(
    job: TrainingJob,
    framework: Framework,
    member: Member,
    everyone: Sequence[Member],
    launcher_image: str = "",
) -> Json:
    """Return the pod of *member*, one of *everyone*, for the job's present attempt."""
    template = copy.deepcopy(member.role.template)
    spec = template["spec"]
    spec.setdefault("restartPolicy", "Never")
    spec["schedulerName"] = SCHEDULER_NAME
    spec["hostname"] = member.name
    spec["subdomain"] = service_name(job)
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.simulated:
        send_to_simulated(spec)
    if job.spec.spot != "Allowed":
        keep(spec, on_spot=on_spot(job, member.role, member.index))
    framework.shape(job, member, spec)
    fill_in(spec)
    if job.spec.ssh and not framework.logs_in and not framework.ssh_files(job):
        ssh.mount(job, spec)
    variables = environment(job, framework, member, everyone)
    for container in spec["containers"]:
        merge_environment(container, variables, free=framework.free())
        # The end of the log of what failed outlives its pod, in the job's status and event.
        devices.tell_nics(container)
        container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    launcher.shape(job, spec, launcher_image)
    code.shape(job.spec.code, spec, launcher_image)
    about = _pod_metadata(job, framework, member, template.get("metadata") or {})
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": about, "spec": spec}


def _pod_metadata(job: TrainingJob, framework: Framework, member: Member, given: Json) -> Json:
    identity, built = member.role.identity, meta(job, member.name)
    built["labels"] = {
        **(given.get("labels") or {}),
        **own(job, member, identity.labels),
        **built["labels"],
        **_member_labels(job, member),
    }
    built["annotations"] = {
        **devices.alignment(job, member.role),
        **(given.get("annotations") or {}),
        **own(job, member, identity.annotations),
        **failures.asked_again(job),
        SIZE_ANNOTATION: size(job),
        RANK_ANNOTATION: str(framework.rank(job, member)),
    }
    return built


def gang(job: TrainingJob) -> Json:
    """Return the gang of *job*: a group for each role."""
    body = to_builtins(Gang(metadata=ObjectMeta(), spec=gang_spec(job)))
    told = foreseen(job) | handed_on(job.metadata.annotations)
    return {
        "apiVersion": GANGS.api_version,
        "kind": GANGS.kind,
        "metadata": {**meta(job, job.metadata.name), **({"annotations": told} if told else {})},
        "spec": body["spec"],
    }


def foreseen(job: TrainingJob) -> dict[str, str]:
    """Return the annotations that tell the scheduler how long the job runs, and waits at most.

    How long it runs is what the job says itself, else its deadline.
    """
    stated = job.metadata.annotations.get(RUNTIME_ANNOTATION)
    deadline = job.spec.run_policy.active_deadline
    if stated is None and deadline is not None:
        stated = f"{duration.parse(deadline):g}"
    told = {RUNTIME_ANNOTATION: stated, MAX_WAIT_ANNOTATION: job.spec.max_wait}
    return {name: text for name, text in told.items() if text is not None}


def gang_spec(job: TrainingJob) -> GangSpec:
    """Return what has to be placed together for *job* to run."""
    split = job.spec.parallelism if job.spec.parallelism.stated else None
    begun = open_roles(job)
    return GangSpec(
        groups=[g for role in job.spec.roles for g in _groups(job, role, role.name in begun)],
        parallelism=split,
        node_policy=job.spec.node_policy,
        strategy=job.spec.strategy,
        topology=job.spec.topology,
        queue=job.spec.queue,
        priority_class_name=job.spec.priority_class_name,
        checkpoint=job.spec.checkpoint,
    )


def _groups(job: TrainingJob, role: Role, begun: bool) -> list[GangGroup]:
    """Return the group of a role; two where its pods beyond the least stand on spot nodes."""
    least_, spares = (least(role), _spares(job)) if begun else (0, 0)
    extra = role.replicas + spares - least_ if begun else 0
    group = GangGroup(
        name=role.name,
        min=least_,
        desired=least_ + extra if extra else None,
        spares=spares,
        topology=role.topology,
        processes=_ranks(job, role) if job.spec.parallelism.stated else None,
    )
    if job.spec.spot != "AboveMin" or not extra:
        return [group]
    return [
        structs.replace(group, desired=None, spares=0),
        structs.replace(
            group, name=role.name + SPOT_SUFFIX, min=0, desired=extra, provision="Desired"
        ),
    ]


def _spares(job: TrainingJob) -> int:
    return job.spec.recovery.spares if launched(job) else 0


def _ranks(job: TrainingJob, role: Role) -> int:
    """Return how many ranks a pod of the role holds."""
    return processes(role) if role in ranked(job.spec.framework, job.spec.roles) else 0


def service(job: TrainingJob) -> Json:
    """Return the headless service that gives the pods their names before they are ready."""
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": meta(job, service_name(job)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABEL: job.metadata.name},
        },
    }


def launcher_service(job: TrainingJob, host: str) -> Json:
    """Return the headless service *host*, which leads to the launcher."""
    found = service(job)
    found["metadata"] = meta(job, host)
    found["spec"]["selector"] = {JOB_LABEL: job.metadata.name, ROLE_LABEL: "launcher"}
    return found


def config_map(job: TrainingJob, files: dict[str, str]) -> Json:
    """Return the ConfigMap with the framework's *files*."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": meta(job, job.metadata.name + CONFIG_SUFFIX),
        "data": files,
    }


def ssh_secret(job: TrainingJob, files: dict[str, str]) -> Json:
    """Return the Secret with the ssh *files* but without keys, which are made with the object."""
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": meta(job, job.metadata.name + SSH_SUFFIX),
        "type": "Opaque",
        "stringData": files,
    }


def owner(job: TrainingJob) -> Json:
    """Return the owner reference that makes an object end with *job*."""
    return {**owner_reference(job, TRAINING_JOBS), "blockOwnerDeletion": True}


def meta(job: TrainingJob, name: str) -> Json:
    """Return the metadata of an object of *job*."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": {
            JOB_LABEL: job.metadata.name,
            **({SIMULATED_LABEL: "true"} if job.spec.simulated else {}),
        },
        "ownerReferences": [owner(job)],
    }


def _member_labels(job: TrainingJob, member: Member) -> dict[str, str]:
    return {
        GANG_LABEL: job.metadata.name,
        GANG_GROUP_LABEL: group_of(job, member.role, member.index),
        ROLE_LABEL: member.role.name,
        INDEX_LABEL: str(member.index),
        ATTEMPT_LABEL: str(job.status.attempt),
        QUEUE_LABEL: job.spec.queue,
    }
