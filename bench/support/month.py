"""Jobs of a large cluster, drawn from what is public about one.

Fitted to the research clusters of "Revisiting Reliability in Large-Scale Machine Learning Research
Clusters" (Kokolis et al., HPCA 2025): 0.45 jobs a GPU and day, nine jobs of ten within one server,
two thirds of the GPU time in jobs of 256 GPUs and more, 84 % of the GPUs asked for, 6.5 node faults
in 1,000 node days.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from lockstep.api import timestamp
from lockstep.api.containers import Container, ResourceRequirements
from lockstep.api.core import Pod, PodSpec
from lockstep.api.gang import Gang, GangSpec
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GANG_LABEL, GPU, SCHEDULER_NAME
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.sim.input.initial_cluster import EPOCH
from lockstep.sim.input.jobs import Job

DAY = 86400.0
JOBS_PER_GPU_DAY = 0.45
LOAD = 0.84
NODE_MTBF_HOURS = 24 * 1000 / 6.5
SPREAD = 1.2
"""Sigma of the lognormal run times."""
LONGEST = 7 * DAY
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
JOBS = (0.42, 0.10, 0.10, 0.29, 0.03, 0.02, 0.015, 0.01, 0.008, 0.004, 0.002, 0.0008, 0.0002)
"""Share of the jobs of each size."""
TIME = (0.015, 0.01, 0.015, 0.06, 0.05, 0.06, 0.06, 0.07, 0.15, 0.17, 0.16, 0.12, 0.06)
"""Share of the GPU time of each size."""
GPUS_PER_NODE = 8


def month(gpus: int, days: float, seed: int) -> Iterator[Job]:
    """Yield the jobs of so many days on so many GPUs, in the order of their arrival."""
    rng = np.random.default_rng(seed)
    count = int(JOBS_PER_GPU_DAY * gpus * days)
    arrivals = np.sort(rng.uniform(0, days * DAY, count))
    kinds = rng.choice(len(SIZES), p=np.array(JOBS) / sum(JOBS), size=count)
    per_job = LOAD * DAY / JOBS_PER_GPU_DAY
    means = np.array(TIME) / sum(TIME) * per_job / (np.array(JOBS) / sum(JOBS) * np.array(SIZES))
    noise = rng.lognormal(-(SPREAD**2) / 2, SPREAD, count)
    runtimes = np.clip(means[kinds] * noise, 10.0, LONGEST)
    for number in range(count):
        size = SIZES[kinds[number]]
        yield _job(f"job-{number}", size, float(arrivals[number]), float(runtimes[number]))


def _job(name: str, size: int, arrival: float, runtime: float) -> Job:
    created = timestamp.show(EPOCH + arrival)
    nodes, gpus = max(1, size // GPUS_PER_NODE), min(GPUS_PER_NODE, size)
    labels = {GANG_LABEL: name}
    pods = tuple(
        Pod(
            metadata=ObjectMeta(
                name=f"{name}-{index}",
                namespace="default",
                labels=labels,
                creation_timestamp=created,
            ),
            spec=_spec(gpus),
        )
        for index in range(nodes)
    )
    meta = ObjectMeta(name=name, namespace="default", creation_timestamp=created)
    return Job(
        key=WorkloadKey("Gang", "default", name),
        arrival=arrival,
        runtime=runtime,
        elapsed=0.0,
        gang=Gang(metadata=meta, spec=GangSpec(min_member=nodes)),
        pods=pods,
        ranks=tuple(range(nodes)),
        pod_gpus=(float(gpus),) * nodes,
    )


@cache
def _spec(gpus: int) -> PodSpec:
    amounts: dict[str, Any] = {GPU: gpus, "cpu": 8 * gpus, "memory": f"{64 * gpus}Gi"}
    resources = ResourceRequirements(requests={**amounts}, limits={GPU: gpus})
    container = Container(name="main", resources=resources)
    return PodSpec(scheduler_name=SCHEDULER_NAME, containers=[container])
