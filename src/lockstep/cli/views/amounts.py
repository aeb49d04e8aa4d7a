"""How much of a resource pods and nodes have."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.api import names, quantity
from lockstep.api.containers import Container
from lockstep.api.core import Node, Pod


def requested(pod: Pod, resource: str) -> int:
    """Return how much of *resource* the pod holds: milli-CPUs for cpu, else whole units."""
    main = sum(_of(container, resource) for container in pod.spec.containers)
    sidecars = 0
    peak = main
    for container in pod.spec.init_containers:
        need = _of(container, resource)
        peak = max(peak, sidecars + need)
        if container.restart_policy == "Always":
            sidecars += need
    overhead = _amount(pod.spec.overhead.get(resource, 0), resource)
    return max(peak, main + sidecars) + overhead


def allocatable(node: Node, resource: str) -> int:
    """Return how much of *resource* the node offers, in the unit of :func:`requested`."""
    given = node.status.allocatable or node.status.capacity
    return _amount(given.get(resource, 0), resource)


def holds(pod: Pod) -> bool:
    """Return whether the pod takes room on a node."""
    return bool(pod.spec.node_name) and pod.status.phase not in ("Succeeded", "Failed")


def total(pods: Iterable[Pod], resource: str) -> int:
    """Return how much of *resource* the pods hold together."""
    return sum(requested(pod, resource) for pod in pods)


def show(amount: int, resource: str) -> str:
    """Return an amount as people write it: ``1500m`` is ``1.5``, bytes are ``GiB``."""
    if resource == names.CPU:
        return f"{amount / 1000:.1f}".removesuffix(".0")
    if resource == names.MEMORY:
        return f"{amount / 2**30:.1f}Gi"
    return str(amount)


def _of(container: Container, resource: str) -> int:
    given = container.resources.requests.get(resource)
    if given is None:
        given = container.resources.limits.get(resource, 0)
    return _amount(given, resource)


def _amount(given: str | int | float, resource: str) -> int:
    return quantity.to_milli(given) if resource == names.CPU else quantity.to_int(given)
