"""Kueue's 15,000 workloads on a real API server, beside a scheduler process: by its timetable.

What Kueue's own runner does is done here: each workload is created when it is due, runs for its
time once it has a node and is deleted; one that had to give way is created again. The rate is that
of all workloads from the first creation to the last deletion, as Kueue's is.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Iterator
from typing import Any

from tests.support.kube_apiserver import KubeApiServer

from bench.figure import Figure, NotMeasured
from bench.queues import CLASSES, COHORTS, QUEUES, Class
from bench.support import schedulers
from bench.support.cluster import add_nodes, real_cluster, require
from lockstep.api import core
from lockstep.api.core import PODS, Pod
from lockstep.api.names import SCHEDULER_NAME
from lockstep.api.queue import QUEUES as QUEUE_KIND
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.kube.informer import Informer

SLOW = True
NODES = 10
DEADLINE = 900.0
WRITERS = 32
SPACE = "default"

Json = dict[str, Any]


def run() -> list[Figure]:
    require("etcd", "kube-apiserver")
    with real_cluster() as server, schedulers.lockstep(server.kubeconfig) as process:
        schedulers.wait_ready(process)
        seconds, evicted = asyncio.run(_play(server))
    count = len(list(arrivals()))
    name = f"{count:,} workloads in {COHORTS * QUEUES} queues of {COHORTS} cohorts, real API server"
    admitted = Figure(f"admit {name}", count / seconds, "workloads/s", limit=85.4)
    return [
        admitted.beside("Kueue", 42.7, "published, other machine"),
        Figure(f"{name}: preempted", evicted, "pods"),
    ]


def arrivals() -> Iterator[tuple[float, str, str, Class]]:
    """Yield when each workload comes, its name, its queue and its class, in order of time."""
    queues = [f"queue-{cohort}-{n}" for cohort in range(COHORTS) for n in range(QUEUES)]
    yield from heapq.merge(
        *(
            [(i * kind.every, f"{queue}-{kind.name}-{i}", queue, kind) for i in range(kind.count)]
            for queue in queues
            for kind in CLASSES
        ),
        key=lambda one: one[0],
    )


async def _play(server: KubeApiServer) -> tuple[float, int]:
    async with server.client() as client:
        await add_nodes(client, NODES)
        await _furnish(client)
        return await Runner(client).run()


async def _furnish(client: Client) -> None:
    for kind in CLASSES:
        body = {"metadata": {"name": kind.name}, "value": kind.priority}
        await client.create(core.PRIORITY_CLASSES, body)
    for cohort in range(COHORTS):
        await _add_queue(client, f"cohort-{cohort}", limit={"cpu": 20 * QUEUES})
        for number in range(QUEUES):
            own = {"guaranteed": {"cpu": 20}, "borrowingLimit": {"cpu": 100}}
            await _add_queue(client, f"queue-{cohort}-{number}", parent=f"cohort-{cohort}", **own)


async def _add_queue(client: Client, name: str, **spec: Any) -> None:
    await client.create(QUEUE_KIND, {"metadata": {"name": name}, "spec": spec})


def workload(name: str, queue: str, kind: Class) -> Json:
    """Return the pod of a workload; nothing must wait for a kubelet when it is deleted."""
    container = {"name": "main", "image": "none"}
    return {
        "metadata": {"name": name, "namespace": SPACE, "labels": {"lockstep.dev/queue": queue}},
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "priorityClassName": kind.name,
            "terminationGracePeriodSeconds": 0,
            "containers": [{**container, "resources": {"requests": {"cpu": str(kind.cpus)}}}],
        },
    }


class Runner:
    """Stands in for the users and the kubelets."""

    def __init__(self, client: Client) -> None:
        self.evicted = 0
        self._client = client
        self._kinds = {name: (queue, kind) for _, name, queue, kind in arrivals()}
        self._due: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        """Names with the uid of what is to be deleted; without one it is to be created."""
        self._running: dict[str, str] = {}
        """By name the uid of the pod that has a node."""
        self._left = set(self._kinds)
        """What has not run to its end."""
        self._over = asyncio.Event()

    async def run(self) -> tuple[float, int]:
        """Play it to the end; return the seconds that it took, and how often one gave way.

        Raises:
            NotMeasured: when not all workloads have been run in time.
        """
        loop = asyncio.get_running_loop()
        informer: Informer[Pod] = Informer(self._client, PODS)
        informer.subscribe(self._take)
        try:
            async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
                tasks = [group.create_task(informer.run())]
                await informer.wait_synced()
                began = loop.time()
                for at, name, _, _ in arrivals():
                    loop.call_at(began + at, self._due.put_nowait, (name, ""))
                tasks += [group.create_task(self._write()) for _ in range(WRITERS)]
                await self._over.wait()
                seconds = loop.time() - began
                for task in tasks:
                    task.cancel()
        except TimeoutError:
            left = f"{len(self._left):,} of {len(self._kinds):,} workloads"
            raise NotMeasured(f"{left} were left after {DEADLINE:g} s") from None
        return seconds, self.evicted

    def _take(self, change: Change[Pod]) -> None:
        name = change.object.metadata.name
        if change.new is None:
            self._running.pop(name, None)
            if name in self._left:
                self.evicted += 1
                self._due.put_nowait((name, ""))
            return
        uid = change.new.metadata.uid
        if change.new.spec.node_name and self._running.get(name) != uid:
            self._running[name] = uid
            runtime = self._kinds[name][1].runtime
            asyncio.get_running_loop().call_later(runtime, self._due.put_nowait, (name, uid))

    async def _write(self) -> None:
        while True:
            name, uid = await self._due.get()
            if not uid:
                await self._client.create(PODS, workload(name, *self._kinds[name]))
            elif self._running.get(name) == uid:
                self._left.discard(name)
                with contextlib.suppress(NotFound):  # it was made to give way this very moment
                    await self._client.delete(PODS, name, SPACE)
                if not self._left:
                    self._over.set()
