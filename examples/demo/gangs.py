"""The gangs that the demo submits to the simulated nodes: more than fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Wanted:
    """A gang: so many pods of so many GPUs, all inside one domain of a tier."""

    name: str
    pods: int
    gpus: int
    tier: str

    @property
    def total(self) -> int:
        """GPUs of all pods together."""
        return self.pods * self.gpus


GANGS = (
    Wanted("moe-256", 32, 8, "spine"),
    Wanted("dense-128", 16, 8, "spine"),
    Wanted("vision-64", 8, 8, "leaf"),
    Wanted("speech-64", 16, 4, "leaf"),
    Wanted("tune-16", 2, 8, "leaf"),
    Wanted("probe-8", 8, 1, "node"),
    Wanted("moe-256-b", 32, 8, "spine"),
    Wanted("dense-128-b", 16, 8, "spine"),
    Wanted("vision-64-b", 8, 8, "leaf"),
)
"""They ask for 984 GPUs of 512, so some must wait."""


def objects(gang: Wanted) -> tuple[Json, list[Json]]:
    """Return the Gang and its pods."""
    spec = {"minMember": gang.pods, "topology": {"required": gang.tier}}
    body = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": gang.name},
        "spec": spec,
    }
    return body, [_pod(gang, index) for index in range(gang.pods)]


def _pod(gang: Wanted, index: int) -> Json:
    main = {"name": "main", "image": "simulated", "resources": {"limits": {GPU: gang.gpus}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang.name}-{index}",
            "labels": {"lockstep.dev/gang": gang.name},
        },
        "spec": {
            "schedulerName": "lockstep",
            "restartPolicy": "Never",
            "nodeSelector": {"lockstep.dev/node": "simulated"},
            "tolerations": [{"key": "lockstep.dev/simulated", "operator": "Exists"}],
            "containers": [main],
        },
    }
