"""Stub cards of the nodes of a cluster, settable while it runs.

Their state is a file of each node; the agent reads it below the node's root, and containers that
use CUDA mount its directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.support import stub_gpus
from tests.support.stub_gpus import StubGpus
from tools.cluster.cluster import Cluster

PLACE: Final = "/var/lib/gpus"
"""Directory of the cards' state on every node."""
_VARIABLES: Final = {"LOCKSTEP_NVML_STATE": "state", "LOCKSTEP_CUDA_WORLD": "state.world"}


def put(cluster: Cluster) -> dict[str, StubGpus]:
    """Give each node eight cards with identities of their own; return them by node."""
    found = {}
    for node in cluster.record.all_nodes:
        place = cluster.record.machine(node.name) / PLACE.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)
        cards = found[node.name] = StubGpus(place / "state")
        own = {f"{n}.uuid": uuid(node.number, n) for n in range(8)}
        cards.update({**stub_gpus.h200x8(), **own})
        kernel_log(cluster, node.name).touch()
    return found


def kernel_log(cluster: Cluster, node: str) -> Path:
    """Return the file that a node's agent reads for its kernel's: the host has one for all."""
    return cluster.record.machine(node) / PLACE.lstrip("/") / "kernel.log"


def uuid(node: int, card: int) -> str:
    """Return the identity of one card."""
    return f"GPU-{node:08d}-0000-0000-0000-{card:012d}"


def options() -> Iterator[str]:
    """Yield the options of Helm by which agents read those states."""
    yield from ("--set", f"agent.extraArgs[0]=--kernel-log=/host{PLACE}/kernel.log")
    for number, (name, file) in enumerate(_VARIABLES.items()):
        yield "--set"
        yield f"agent.extraEnv[{number}].name={name}"
        yield "--set"
        yield f"agent.extraEnv[{number}].value=/host{PLACE}/{file}"


def allocatable(cluster: Cluster, node: str) -> str:
    """Return how many cards the kubelet of a node has to give."""
    shown = "jsonpath={.status.allocatable.nvidia\\.com/gpu}"
    return cluster.kubectl("get", "node", node, "-o", shown) or "0"


def environment() -> list[dict[str, str]]:
    """Return the variables of a container that uses the cards."""
    return [{"name": name, "value": f"{PLACE}/{file}"} for name, file in _VARIABLES.items()]


def mounted(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a pod's spec whose first container reaches the state of the node's cards."""
    (first, *others) = spec["containers"]
    mount = {"name": "gpus", "mountPath": PLACE}
    first = {
        **first,
        "env": [*first.get("env", ()), *environment()],
        "volumeMounts": [*first.get("volumeMounts", ()), mount],
    }
    volume = {"name": "gpus", "hostPath": {"path": PLACE, "type": "Directory"}}
    volumes = [*spec.get("volumes", ()), volume]
    return {**spec, "containers": [first, *others], "volumes": volumes}


def built() -> Path:
    """Return the directory of the stub's programs, which every node sees at the same place."""
    return stub_gpus.BUILT


def gang(name: str, image: str, pods: int, gpus: int, **spec: Any) -> dict[str, Any]:
    """Return a job whose pods hold cards and do nothing else."""
    main = {
        "name": "main",
        "image": image,
        "command": ["sleep", "100000"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    pod = {"terminationGracePeriodSeconds": 1, "containers": [main]}
    role = {"name": "worker", "replicas": pods, "template": {"spec": pod}}
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"framework": "plain", "launcher": "None", "roles": [role], **spec},
    }
