"""Jobs of simulations in one line each: ``job("a", "4x8", at=10, runs=600)``."""

from __future__ import annotations

import re
from typing import Any

from lockstep.api.names import (
    API_VERSION,
    ARRIVAL_ANNOTATION,
    GPU,
    GPU_COMPUTE,
    RUNTIME_ANNOTATION,
)
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import (
    InitialCluster,
    initial_cluster_of,
    read_initial_cluster,
)
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.result.record import Result

Json = dict[str, Any]


def job(name: str, size: str, *, at: float = 0, runs: float | None = None, **spec: Any) -> Json:
    """Return a Gang of *size*: ``4x8`` is 4 pods of 8 GPUs, ``2..4x8`` may run with 2 of them.

    ``3x50%`` is 3 pods that take half a GPU each.
    """
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?x(\d+)(%?)", size)
    assert match is not None, size
    least, most, gpus = int(match[1]), int(match[2] or match[1]), match[3]
    asked = {GPU_COMPUTE: gpus} if match[4] else {GPU: gpus}
    annotations = {ARRIVAL_ANNOTATION: str(at)}
    if runs is not None:
        annotations[RUNTIME_ANNOTATION] = str(runs)
    resources = {"limits": asked, "requests": asked}
    template = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    group = {"name": "worker", "min": least, "desired": most, "template": template}
    return {
        "apiVersion": API_VERSION,
        "kind": "Gang",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"groups": [group], **spec},
    }


def training_job(name: str, size: str, *, at: float = 0, runs: float, **spec: Any) -> Json:
    """Return a plain TrainingJob of *size*."""
    gang = job(name, size, at=at, runs=runs)
    group = gang["spec"]["groups"][0]
    role = {"name": "worker", "replicas": group["desired"], "template": group["template"]}
    return gang | {"kind": "TrainingJob", "spec": {"framework": "plain", "roles": [role], **spec}}


def simulate(cluster: str | InitialCluster, *jobs: Json, options: Options | None = None) -> Result:
    """Run *jobs* over a SPEC or a world."""
    world = initial_cluster_of(parse(cluster)) if isinstance(cluster, str) else cluster
    return Simulation(world, read_jobs(jobs, world), options or Options()).run()


def world(*objects: Json) -> InitialCluster:
    """Return the world of some objects."""
    return read_initial_cluster(objects)
