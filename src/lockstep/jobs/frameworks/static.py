"""Frameworks that a few variables bring together: each member's, made of where the others are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.jobs.frameworks.base import (
    UNBUFFERED,
    Framework,
    Member,
    members,
    own_setting,
    port,
    port_problems,
)

Variables = Callable[[TrainingJob, Member, Sequence[Member]], dict[str, str]]

MASTER: Final = "MASTER_PORT"
"""A job's own setting of it is the port at which the members of any of these meet."""
LEADERS: Final = ("chief", "master")
_SERVERS: Final = ("ps", "evaluator", "server", "scheduler")
"""Roles that serve the others and do not decide."""
_PARAMETER_SERVERS: Final = ("scheduler", "server", "worker")
_TASKS: Final = ("chief", "master", "ps", "worker", "evaluator")


@dataclass(frozen=True, kw_only=True)
class Static(Framework):
    """A framework of which no more is known than its variables."""

    name: str
    variables: Variables
    roles: tuple[str, ...] = ()
    """Names that a job's roles may have; any, where there are none."""
    logs_in: bool = False

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return a port that is none, and roles that mean nothing to the framework."""
        found = port_problems(job, MASTER)
        for i, role in enumerate(job.spec.roles):
            if self.roles and role.name not in self.roles:
                allowed = f"{self.name} knows: {', '.join(self.roles)}"
                found.append(Problem(f"spec.roles[{i}].name", role.name, allowed))
        return found

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return what the framework reads."""
        return {UNBUFFERED: "1", **self.variables(job, member, everyone)}

    def free(self) -> frozenset[str]:
        """Return buffering and the port."""
        return frozenset({UNBUFFERED, MASTER})

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return the one that leads, where a role says so, else all but servers and evaluators."""
        everyone = members(job)
        if leaders := [m for m in everyone if m.role.name in LEADERS]:
            return leaders
        return [m for m in everyone if m.role.name not in _SERVERS] or everyone


def meeting_port(job: TrainingJob) -> str:
    """Return the port at which the members meet."""
    return own_setting(job, MASTER) or str(port(job, "master"))


def _tensorflow(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return the cluster as ``tf.distribute`` reads it; the evaluator is beside it.

    Each member has a port of its own: on a process node pods share a network.
    """
    if len(everyone) == 1:
        return {}
    own = own_setting(job, MASTER)
    cluster: dict[str, list[str]] = {}
    for one in everyone:
        if one.role.name != "evaluator":
            at = f"{one.host}:{own or port(job, one.name)}"
            cluster.setdefault(one.role.name, []).append(at)
    task = {"type": member.role.name, "index": member.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def _jax(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return the coordinator under the names of Kubeflow's Trainer, and those of its JAXJob."""
    host, at = everyone[0].host, meeting_port(job)
    number, count = str(member.rank), str(len(everyone))
    return {
        "JAX_COORDINATOR_ADDRESS": f"{host}:{at}",
        "JAX_NUM_PROCESSES": count,
        "JAX_PROCESS_ID": number,
        "COORDINATOR_ADDRESS": host,
        "COORDINATOR_PORT": at,
        "NUM_PROCESSES": count,
        "PROCESS_ID": number,
    }


def _xgboost(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return the tracker under the names of Kubeflow's Trainer, and those of its XGBoostJob."""
    host, at, count = everyone[0].host, meeting_port(job), str(len(everyone))
    found = {
        "DMLC_TRACKER_URI": host,
        "DMLC_TRACKER_PORT": at,
        "DMLC_TASK_ID": str(member.rank),
        "DMLC_NUM_WORKER": count,
        "MASTER_ADDR": host,
        "MASTER_PORT": at,
        "WORLD_SIZE": count,
        "RANK": str(member.rank),
    }
    workers = [m.host for m in everyone if m.role.name == "worker"]
    if len(everyone) > 1:
        found |= {"WORKER_PORT": at, "WORKER_ADDRS": ",".join(workers)}
    return found


def _paddle(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return what ``paddle.distributed.launch`` reads."""
    servers = sum(m.role.name in LEADERS for m in everyone)
    return {
        "PADDLE_JOB_ID": job.metadata.name,
        "PADDLE_MASTER": f"{everyone[0].host}:{meeting_port(job)}",
        "PADDLE_NNODES": str(len(everyone)),
        "PADDLE_SERVER_NUM": "1" if servers else "0",
        "PADDLE_TRAINER_NUM": "1",
    }


def _dmlc(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return what ps-lite reads, under MXNet and BytePS alike."""
    count = {name: sum(m.role.name == name for m in everyone) for name in _PARAMETER_SERVERS}
    root = next((m.host for m in everyone if m.role.name == "scheduler"), everyone[0].host)
    found = {
        "DMLC_PS_ROOT_URI": root,
        "DMLC_PS_ROOT_PORT": meeting_port(job),
        "DMLC_NUM_SERVER": str(count["server"]),
        "DMLC_NUM_WORKER": str(count["worker"]),
        "DMLC_ROLE": member.role.name,
    }
    if member.role.name == "worker":
        found["DMLC_WORKER_ID"] = str(member.index)
    return found


def _mxnet(job: TrainingJob, member: Member, everyone: Sequence[Member]) -> dict[str, str]:
    """Return ps-lite's variables and the cluster as MXNet's own operator tells it."""
    at = int(meeting_port(job))
    cluster: dict[str, list[dict[str, str | int]]] = {}
    for one in everyone:
        cluster.setdefault(one.role.name, []).append({"url": one.host, "port": at})
    task = {"type": member.role.name, "index": member.index}
    config = {"cluster": cluster, "labels": {}, "task": task}
    return {
        **_dmlc(job, member, everyone),
        "MX_CONFIG": json.dumps(config),
        "DMLC_USE_KUBERNETES": "1",
    }


STATIC: Final = (
    Static(name="tensorflow", variables=_tensorflow, roles=_TASKS),
    Static(name="jax", variables=_jax),
    Static(name="xgboost", variables=_xgboost),
    Static(name="paddle", variables=_paddle),
    Static(name="mxnet", variables=_mxnet, roles=_PARAMETER_SERVERS),
    Static(name="byteps", variables=_dmlc, roles=_PARAMETER_SERVERS),
)
