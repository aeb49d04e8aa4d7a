"""PyTorchJobs: a master and workers, or workers alone, with torchrun's variables."""

from __future__ import annotations

from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat.kubeflow import jobs
from lockstep.compat.kubeflow.objects import PyTorchJobSpec, ReplicaSpec
from lockstep.compat.translation import Refused, Translation, read

CONTAINER: Final = "pytorch"
PORT_NAME: Final = "pytorchjob-port"
TYPES: Final = ("Master", "Worker")
"""In the order of their ranks."""
_AT: Final = "spec.pytorchReplicaSpecs"


def to_native(obj: AnyObject) -> Translation:
    """Return *obj* as a TrainingJob.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, PyTorchJobSpec)
    replicas = _replicas(spec)
    roles = [
        jobs.role(
            obj,
            "PyTorchJob",
            type_,
            one,
            f"{_AT}[{type_}]",
            leads=type_ == "Master" or len(replicas) == 1,
            main=CONTAINER,
        )
        for type_, one in replicas.items()
    ]
    native = jobs.job(
        obj, "pytorch", roles, spec.run_policy, jobs.restarts(replicas, spec.run_policy)
    )
    jobs.rules(native, replicas)
    _port(roles)
    if spec.elastic_policy is not None:
        _stretch(native, roles, spec)
    else:
        _variables(roles, spec)
        if "Master" in replicas:
            native["spec"]["successPolicy"] = {"roles": ["master"]}
    return Translation((native,), expires_after=spec.run_policy.ttl_seconds_after_finished)


def _replicas(spec: PyTorchJobSpec) -> dict[str, ReplicaSpec]:
    for type_ in spec.pytorch_replica_specs:
        if type_ not in TYPES:
            raise Refused(_AT, type_, f"served are: {', '.join(TYPES)}")
    found: dict[str, ReplicaSpec] = {
        t: spec.pytorch_replica_specs[t] for t in TYPES if t in spec.pytorch_replica_specs
    }
    if not found:
        raise Refused(_AT, None, f"at least one is needed of: {', '.join(TYPES)}")
    if "Master" in found and found["Master"].replicas != 1:
        raise Refused(f"{_AT}[Master].replicas", found["Master"].replicas, "must be 1")
    return found


def _processes(spec: PyTorchJobSpec) -> int | None:
    """Return how many processes a pod starts; None: one for each GPU."""
    stated = spec.nproc_per_node
    if spec.elastic_policy is not None and spec.elastic_policy.n_proc_per_node is not None:
        if stated is not None:
            given = spec.elastic_policy.n_proc_per_node
            at = "spec.elasticPolicy.nProcPerNode"
            raise Refused(at, given, "leave it out: spec.nprocPerNode says it")
        stated = spec.elastic_policy.n_proc_per_node
    if stated in (None, "auto", "gpu"):
        return None
    if str(stated).isdecimal() and int(stated or 0) > 0:
        return int(stated or 0)
    raise Refused("spec.nprocPerNode", stated, "must be auto, gpu or a whole number from 1")


def _variables(roles: list[Json], spec: PyTorchJobSpec) -> None:
    """Give the pods the variables that training-operator sets, in its own way of counting."""
    processes = _processes(spec)
    pods = sum(role["replicas"] for role in roles)
    for role in roles:
        if processes is not None:
            role["processesPerNode"] = processes
        role["identity"]["env"] = {
            "WORLD_SIZE": str(pods * (processes or 1)),
            "RANK": "{rank}",
            "PET_NPROC_PER_NODE": str(processes or spec.nproc_per_node or "auto"),
        }


def _stretch(native: Json, roles: list[Json], spec: PyTorchJobSpec) -> None:
    """Make the workers' number one that may change; the launcher holds the ranks."""
    policy = spec.elastic_policy
    workers = next((role for role in roles if role["name"] == "worker"), None)
    if policy is None or workers is None:
        raise Refused("spec.elasticPolicy", "...", "needs replicas of the type Worker")
    for role in roles:
        if processes := _processes(spec):
            role["processesPerNode"] = processes
        if not role["template"]["spec"]["containers"][0].get("command"):
            raise Refused(
                f"{_AT}[{role['name'].title()}].template.spec.containers",
                None,
                "an elastic job needs a command, which its launcher starts",
            )
    native["spec"]["launcher"] = "Auto"
    if policy.max_restarts is not None:
        native["spec"]["recovery"]["maxRestarts"] = policy.max_restarts
    for name, value in (("min", policy.min_replicas), ("max", policy.max_replicas)):
        if value is None:
            continue
        beyond = value > workers["replicas"] if name == "min" else value < workers["replicas"]
        if beyond:
            raise Refused(
                f"spec.elasticPolicy.{name}Replicas",
                value,
                f"must be at {'most' if name == 'min' else 'least'} the workers' replicas, "
                f"{workers['replicas']}",
            )
        workers[name] = value


def _port(roles: list[Json]) -> None:
    """Let ranks meet at the port that the first role names, where it names one."""
    main = roles[0]["template"]["spec"]["containers"][0]
    for port in main.get("ports") or []:
        if port.get("name") == PORT_NAME and port.get("containerPort"):
            jobs.set_port(roles, str(port["containerPort"]))
