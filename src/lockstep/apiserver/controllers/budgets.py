"""The status of disruption budgets: how many disruptions they allow now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.controllers.namespaces import NamespaceStatus
from lockstep.apiserver.disruption import selector_of, status_of
from lockstep.apiserver.objects import Objects

_BUDGETS = "poddisruptionbudgets.policy"
_TOGETHER_SECONDS = 0.2


def budget_status(objects: Objects) -> NamespaceStatus:
    """Return what counts the pods of each budget when a pod or a budget beside it changes."""

    def statuses(namespace: str) -> Iterator[tuple[str, Callable[[Json], Json]]]:
        pods = objects.store.objects("pods", namespace)
        now = timestamp(objects.clock())
        for record in objects.store.objects(_BUDGETS, namespace):
            selector = selector_of(record.object())
            protected = [pod.object() for pod in pods if selector.matches(pod.labels)]
            yield record.key.name, _counted(protected, now)

    causes = frozenset({_BUDGETS, "pods"})
    return NamespaceStatus(objects, _BUDGETS, statuses, _TOGETHER_SECONDS, causes)


def _counted(protected: list[Json], now: str) -> Callable[[Json], Json]:
    return lambda budget: {**budget, "status": status_of(budget, protected, now)}
