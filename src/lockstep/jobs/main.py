"""The process ``lockstep controllers``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from lockstep.api.core import CONFIG_MAPS, PODS, SERVICES, Pod
from lockstep.api.gang import GANGS
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import CONTROLLERS_LEASE, JOB_LABEL, SYSTEM_NAMESPACE
from lockstep.api.training import TRAINING_JOBS
from lockstep.jobs.controller import Caches, JobController
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.controller import Controller, Key
from lockstep.kube.crds import ensure_crds
from lockstep.kube.endpoints import Ports
from lockstep.kube.manager import Manager


async def run(
    *,
    kubeconfig: Path | None,
    identity: str | None = None,
    leader_elect: bool = True,
    lease_namespace: str = SYSTEM_NAMESPACE,
    ports: Ports | None = None,
    ready: Callable[[str], None],
) -> None:
    """Run the job controllers until SIGINT or SIGTERM; call *ready* once they are synced.

    Raises:
        ConfigError: when no cluster is configured.
        ApiError: when it cannot be reached at the start.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        manager = Manager(
            client,
            name=CONTROLLERS_LEASE,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=ports,
        )
        add_jobs(manager)
        await manager.run(ready)


def add_jobs(manager: Manager) -> None:
    """Run the controller of training jobs while *manager* leads."""
    jobs = manager.informer(TRAINING_JOBS)
    pods = manager.informer(PODS, label_selector=JOB_LABEL, indices={JOB_LABEL: _job_of_pod})
    others = {
        res: manager.informer(res, label_selector=JOB_LABEL)
        for res in (GANGS, SERVICES, CONFIG_MAPS)
    }
    caches = Caches(jobs, pods, others)
    shell = JobController(manager.client, caches, manager.recorder())
    controller = Controller("trainingjob", shell.reconcile, workers=4)
    controller.follow(jobs)
    for informer in (pods, *others.values()):
        controller.follow(informer, lambda obj: _job_key(obj.metadata))
    manager.add(controller)


def _job_of_pod(pod: Pod) -> Iterable[str]:
    return [f"{pod.metadata.namespace}/{pod.metadata.labels[JOB_LABEL]}"]


def _job_key(meta: ObjectMeta) -> Iterable[Key]:
    return [(meta.namespace, meta.labels[JOB_LABEL])]
