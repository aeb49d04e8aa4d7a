"""Finding the log of a container among the node's pods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockstep.nodes.process import kept_logs
from lockstep.nodes.process.agent import Agent
from lockstep.nodes.process.kept_logs import LogEntry
from lockstep.nodes.process.log_server import NoLog
from lockstep.nodes.process.remote_server import NoContainer


class PodShelf:
    """The logs of the pods that an agent runs."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def find(
        self, namespace: str, pod: str, container: str, *, previous: bool
    ) -> tuple[Path, Callable[[], bool]]:
        """Return a container's log, and whether more may be written to it.

        Raises:
            NoLog: when there is none.
        """
        worker = self._agent.find(namespace, pod)
        if worker is None:
            raise NoLog(f"pod {namespace}/{pod} is not on this node")
        runner = worker.runners.get(container)
        if runner is None:
            raise NoLog(f"container {container} not found in pod {pod}")
        if previous:
            run = runner.previous
            if run is None:
                text = f'previous terminated container "{container}" in pod "{pod}" not found'
                raise NoLog(text, waiting=True)
            return worker.home.log(container, run.attempt), _never
        present = runner.present
        if present is None:
            text = f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating'
            raise NoLog(text, waiting=True)
        log = worker.home.log(container, present.attempt)
        return log, lambda: runner.present is present and present.exit is None

    def of_job(self, namespace: str, job: str) -> list[LogEntry]:
        """Return the pods of a job whose logs are here, those of pods that are gone too."""
        present = [LogEntry.of(one.home.record) for one in self._agent.workers.values()]
        mine = [e for e in present if (e.namespace, e.job) == (namespace, job)]
        return [*self._agent.node.kept.of_job(namespace, job), *mine]

    def find_by_uid(
        self, namespace: str, pod: str, uid: str, container: str, *, previous: bool, after: float
    ) -> tuple[Path, Callable[[], bool]]:
        """Return the log of one certain pod, which may be gone, and came no sooner than *after*.

        Raises:
            NoLog: when there is none.
        """
        worker = self._agent.workers.get(uid)
        if worker is not None and not previous:
            meta = worker.pod.metadata
            log = kept_logs.of_home(worker.home, container)
            if (meta.namespace, meta.name) == (namespace, pod) and log is not None:
                return log, _never
        kept = self._agent.node.kept
        found = kept.find(namespace, pod, uid, container, previous=previous, after=after)
        if found is None:
            raise NoLog(f"no log of container {container} of pod {pod} with uid {uid} is kept")
        return found, _never

    def orders(self, namespace: str, pod: str, container: str, argv: list[str]) -> dict[str, Any]:
        """Return the orders for a command beside a container.

        Raises:
            NoContainer: when there is none that runs.
        """
        worker = self._agent.find(namespace, pod)
        runner = worker.runners.get(container) if worker is not None else None
        if runner is None:
            raise NoContainer(f"container {container} not found in pod {pod}")
        if runner.present is None or runner.present.exit is not None:
            raise NoContainer(f"container {container} of pod {pod} does not run")
        return runner.orders_beside(argv)

    def address(self, namespace: str, pod: str) -> str:
        """Return the address on which a pod listens.

        Raises:
            NoContainer: when there is no such pod.
        """
        worker = self._agent.find(namespace, pod)
        if worker is None:
            raise NoContainer(f"pod {namespace}/{pod} is not on this node")
        return worker.home.record.address


def _never() -> bool:
    return False
