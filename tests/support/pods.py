"""Pods as the process node reads them, briefly."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import convert
from lockstep.nodes.process.facts import ContainerFacts, Exit, Run
from lockstep.nodes.process.spec import Pod


def container(name: str, **fields: Any) -> dict[str, Any]:
    """Return a container that needs nothing."""
    return {"name": name, "image": "i", "command": ["true"], **fields}


def make(
    *names: str, init: tuple[str, ...] = (), sidecars: tuple[str, ...] = (), **spec: Any
) -> Pod:
    """Return a pod with main containers *names*; sidecars come after the init containers."""
    first = [container(name) for name in init]
    first += [container(name, restartPolicy="Always") for name in sidecars]
    obj = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u-1", **spec.pop("metadata", {})},
        "spec": {
            "containers": [container(name) for name in names or ("main",)],
            "initContainers": first,
            **spec,
        },
    }
    return convert(obj, Pod)


def running(
    attempt: int = 0, *, started: bool = True, ready: bool = True, **more: Any
) -> ContainerFacts:
    """Return the facts of a container that runs since second 100."""
    return ContainerFacts(run=Run(attempt, 100.0, 4711), started=started, ready=ready, **more)


def ended(code: int, at: float = 110.0, *, attempt: int = 0, **more: Any) -> ContainerFacts:
    """Return the facts of a container that ran from second 100 until *at*."""
    return ContainerFacts(run=Run(attempt, 100.0, 4711, Exit(code, finished=at)), **more)
