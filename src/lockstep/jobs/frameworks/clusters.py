"""Clusters that a job brings along: Ray, Spark, Flink and Trino, a head, its workers, a driver.

A pod without a command of its own runs the part that its role names; the role ``driver`` runs the
user's program against the cluster, and where there is one its end is the job's. Workers may come
and go: the head does without those that are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.training import TrainingJob
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.jobs.frameworks.base import CONFIG_SUFFIX, UNBUFFERED, Member, members, port
from lockstep.jobs.frameworks.plain import Plain

DRIVER: Final = "driver"
CONFIG_MOUNT: Final = "/etc/lockstep-cluster"
_VOLUME: Final = "lockstep-cluster"
_INHERITED: Final = ("image", "imagePullPolicy", "securityContext")
_ADDRESS: Final = "LOCKSTEP_POD_IP"


@dataclass(frozen=True, slots=True)
class Head:
    """Where the cluster's head is found: its host and, by purpose, its ports."""

    job: TrainingJob
    host: str

    def port(self, purpose: str) -> str:
        """Return the head's port for *purpose*: the job's own, for pods may share a network."""
        return str(port(self.job, purpose))


Variables = Callable[[Head], dict[str, str]]
Command = Callable[[Head], list[str]]


@dataclass(frozen=True, kw_only=True)
class Standalone(Plain):
    """A framework that is a cluster of its own."""

    name: str
    head: str
    """The role of its head, of which there is one pod."""
    worker: str
    variables: Variables
    commands: dict[str, Command]
    """By role, what a pod without a command runs."""
    wait: str = ""
    """Script that ends once the head can be used, where its own programs do not wait for it."""
    config: Callable[[Head], dict[str, str]] = lambda head: {}
    """Files that all pods find at ``CONFIG_MOUNT``."""
    logs_in: bool = False

    def problems(self, job: TrainingJob) -> list[Problem]:
        """Return roles that mean nothing to it, a head too many, a driver with nothing to run."""
        known = (self.head, self.worker, DRIVER)
        found = []
        for i, role in enumerate(job.spec.roles):
            at = f"spec.roles[{i}]"
            if role.name not in known:
                allowed = f"{self.name} knows: {', '.join(known)}"
                found.append(Problem(f"{at}.name", role.name, allowed))
            elif role.name != self.worker and role.replicas != 1:
                found.append(Problem(f"{at}.replicas", role.replicas, "must be 1"))
            elif role.name == DRIVER and not _has_command(role.template):
                at += ".template.spec.containers[0].command"
                found.append(Problem(at, None, "is needed: what runs against the cluster"))
        if self.head not in {role.name for role in job.spec.roles}:
            found.append(Problem("spec.roles", None, f"{self.name} needs a role {self.head}"))
        return found

    def environment(
        self, job: TrainingJob, member: Member, everyone: Sequence[Member]
    ) -> dict[str, str]:
        """Return where the head is, in the cluster's own words, and the pod's place."""
        plain = super().environment(job, member, everyone)
        del plain["LOCKSTEP_PEERS"]  # they come and go
        return plain | self.variables(self._head(job, everyone))

    def free(self) -> frozenset[str]:
        """Return buffering."""
        return frozenset({UNBUFFERED})

    def shape(self, job: TrainingJob, member: Member, spec: Json) -> None:
        """Give a pod without a command the part of the cluster that it is."""
        main = spec["containers"][0]
        head = self._head(job, members(job))
        if member.role.name in self.commands and not (main.get("command") or main.get("args")):
            main["command"] = self.commands[member.role.name](head)
        if self.wait and member.role.name == DRIVER:
            kept = {k: main[k] for k in _INHERITED if k in main}
            told = [{"name": k, "value": v} for k, v in self.variables(head).items()]
            before = {"name": "wait-for-head", **kept, "command": _shell(self.wait)}
            before["env"] = [*(main.get("env") or []), *told]
            spec["initContainers"] = [*spec.get("initContainers", []), before]
        address = {"name": _ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        main["env"] = [address, *(main.get("env") or [])]
        if self.config(head):
            source = {"configMap": {"name": job.metadata.name + CONFIG_SUFFIX}}
            spec["volumes"] = [*spec.get("volumes", []), {"name": _VOLUME, **source}]
            mount = {"name": _VOLUME, "mountPath": CONFIG_MOUNT}
            main["volumeMounts"] = [*main.get("volumeMounts", []), mount]

    def files(self, job: TrainingJob, running: frozenset[str]) -> dict[str, str]:
        """Return its configuration."""
        return self.config(self._head(job, members(job)))

    def deciding(self, job: TrainingJob) -> list[Member]:
        """Return the driver; without one the head, which runs until the job is deleted."""
        everyone = members(job)
        drivers = [m for m in everyone if m.role.name == DRIVER]
        return drivers or [m for m in everyone if m.role.name == self.head]

    def replaceable(self, job: TrainingJob) -> frozenset[str]:
        """Return the workers."""
        return frozenset(m.name for m in members(job) if m.role.name == self.worker)

    def _head(self, job: TrainingJob, everyone: Sequence[Member]) -> Head:
        first = next((m for m in everyone if m.role.name == self.head), everyone[0])
        return Head(job, first.host)


def _has_command(template: Json) -> bool:
    main = template["spec"]["containers"][0]
    return bool(main.get("command") or main.get("args"))


def _shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def _ray(head: Head) -> dict[str, str]:
    return {
        "RAY_ADDRESS": f"{head.host}:{head.port('gcs')}",
        "RAY_HEAD_SERVICE_HOST": head.host,
        "RAY_PORT": head.port("gcs"),
        "RAY_DASHBOARD_PORT": head.port("dashboard"),
        "RAY_CLIENT_PORT": head.port("client"),
    }


def _ray_head(head: Head) -> list[str]:
    return _shell(
        "exec env -u RAY_ADDRESS ray start --head --block --disable-usage-stats "
        f"--node-ip-address=${_ADDRESS} --port=$RAY_PORT --dashboard-host=${_ADDRESS} "
        "--dashboard-port=$RAY_DASHBOARD_PORT --ray-client-server-port=$RAY_CLIENT_PORT"
    )


_RAY_WAIT: Final = (
    'until ray health-check --address "$RAY_ADDRESS" >/dev/null 2>&1; do sleep 1; done'
)


def _ray_worker(head: Head) -> list[str]:
    return _shell(
        f'{_RAY_WAIT}; exec ray start --block --disable-usage-stats --address="$RAY_ADDRESS" '
        f"--node-ip-address=${_ADDRESS}"
    )


def _spark(head: Head) -> dict[str, str]:
    return {
        "SPARK_MASTER": f"spark://{head.host}:{head.port('master')}",
        "SPARK_MASTER_HOST": head.host,
        "SPARK_MASTER_PORT": head.port("master"),
        "SPARK_MASTER_WEBUI_PORT": head.port("web"),
    }


_SPARK: Final = 'exec "${SPARK_HOME:-/opt/spark}/bin/spark-class" org.apache.spark.deploy'


def _spark_master(head: Head) -> list[str]:
    return _shell(
        f'{_SPARK}.master.Master --host "$SPARK_MASTER_HOST" --port $SPARK_MASTER_PORT '
        "--webui-port $SPARK_MASTER_WEBUI_PORT"
    )


def _spark_worker(head: Head) -> list[str]:
    return _shell(f'{_SPARK}.worker.Worker --host "${_ADDRESS}" --webui-port 0 "$SPARK_MASTER"')


def _flink(head: Head) -> dict[str, str]:
    return {
        "JOB_MANAGER_RPC_ADDRESS": head.host,
        "JOB_MANAGER_RPC_PORT": head.port("rpc"),
        "FLINK_REST_PORT": head.port("rest"),
    }


_FLINK_TOLD: Final = (
    "-D jobmanager.rpc.address=$JOB_MANAGER_RPC_ADDRESS "
    "-D jobmanager.rpc.port=$JOB_MANAGER_RPC_PORT "
    "-D rest.address=$JOB_MANAGER_RPC_ADDRESS -D rest.port=$FLINK_REST_PORT "
)


def _flink_part(script: str, more: str) -> Command:
    start = f'exec "${{FLINK_HOME:-/opt/flink}}/bin/{script}.sh" start-foreground'
    return lambda head: _shell(f"{start} {_FLINK_TOLD}{more}")


def _trino(head: Head) -> dict[str, str]:
    return {"TRINO_SERVER": f"http://{head.host}:{head.port('http')}"}


def _trino_files(head: Head) -> dict[str, str]:
    common = (
        f"http-server.http.port={head.port('http')}\n"
        f"discovery.uri=http://{head.host}:{head.port('http')}\n"
    )
    leads = "coordinator=true\nnode-scheduler.include-coordinator=false\n"
    return {
        "coordinator.properties": leads + common,
        "worker.properties": f"coordinator=false\n{common}",
    }


def _trino_part(role: str) -> Command:
    script = (
        "exec /usr/lib/trino/bin/launcher run --etc-dir /etc/trino "
        f"--config {CONFIG_MOUNT}/{role}.properties -Dnode.id=$HOSTNAME"
    )
    return lambda head: _shell(script)


CLUSTERS: Final = (
    Standalone(
        name="ray",
        head="head",
        worker="worker",
        variables=_ray,
        commands={"head": _ray_head, "worker": _ray_worker},
        wait=_RAY_WAIT,
    ),
    Standalone(
        name="spark",
        head="master",
        worker="worker",
        variables=_spark,
        commands={"master": _spark_master, "worker": _spark_worker},
    ),
    Standalone(
        name="flink",
        head="jobmanager",
        worker="taskmanager",
        variables=_flink,
        commands={
            "jobmanager": _flink_part("jobmanager", f"-D jobmanager.bind-host=${_ADDRESS}"),
            "taskmanager": _flink_part("taskmanager", f"-D taskmanager.host=${_ADDRESS}"),
        },
    ),
    Standalone(
        name="trino",
        head="coordinator",
        worker="worker",
        variables=_trino,
        commands={"coordinator": _trino_part("coordinator"), "worker": _trino_part("worker")},
        config=_trino_files,
    ),
)
