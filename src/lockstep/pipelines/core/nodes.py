"""Steps as they come about while a run goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from lockstep.api import timestamp
from lockstep.api.pipeline import ENDED, StepPhase, StepStatus, Task, Template
from lockstep.pipelines.core.plan import Plan

T = TypeVar("T")
NodeKind = Literal["Pod", "Object", "Graph", "Loop", "Suspend", "Values"]


@dataclass(slots=True, eq=False)
class Node:
    """One step: a task in one graph, of one item of a loop."""

    id: str
    task: Task
    template: Template
    kind: NodeKind
    parent: Node | None
    """The graph or the loop that it is part of."""
    inputs: dict[str, Any] = field(default_factory=dict)
    item: Any = None
    phase: StepPhase = "Waiting"
    message: str = ""
    started: float | None = None
    finished: float | None = None
    attempt: int = 0
    faults: int = 0
    stuck: float | None = None
    """Since when something keeps its pod from starting."""
    object: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    kept_from: str = ""
    exit_code: int | None = None
    """Of the container that ended last, where the step is a pod."""
    locks: list[str] = field(default_factory=list)
    """Locks that it holds."""
    key: str = ""
    """What its result is kept under."""
    scope: Scope | None = None
    many: Many | None = None

    @property
    def over(self) -> bool:
        """Return whether nothing more happens to it."""
        return self.phase in ENDED

    @property
    def is_leaf(self) -> bool:
        """Return whether it runs by itself, and not as others below it."""
        return self.kind in ("Pod", "Object", "Suspend")

    @property
    def is_daemon(self) -> bool:
        """Return whether it is over for the others once it is ready, and goes on beside them."""
        return self.kind == "Pod" and self.template.pod is not None and self.template.pod.daemon

    def graph(self) -> Node | None:
        """Return the graph in which its task stands."""
        at = self.parent
        while at is not None and at.scope is None:
            at = at.parent
        return at

    @property
    def is_exit(self) -> bool:
        """Return whether it belongs to what runs however the rest ends."""
        at: Node | None = self
        while at is not None:
            if at.task.exit:
                return True
            at = at.parent
        return False

    def view(self) -> dict[str, Any]:
        """Return what expressions see of it."""
        return {
            "state": self.phase,
            "outputs": self.outputs,
            "message": self.message,
            "exitCode": self.exit_code or 0,
            "id": self.id,
            "startedAt": "" if self.started is None else timestamp.show(self.started),
            "finishedAt": "" if self.finished is None else timestamp.show(self.finished),
        }

    def status(self) -> StepStatus:
        """Return how it is doing in the words of the run's status."""
        return StepStatus(
            name=self.task.name,
            template=self.task.template,
            kind=self.kind,
            phase=self.phase,
            message=self.message[:1000],
            started_at=None if self.started is None else timestamp.show(self.started),
            finished_at=None if self.finished is None else timestamp.show(self.finished),
            attempt=self.attempt,
            faults=self.faults,
            object=self.object,
            outputs=self.outputs,
            kept_from=self.kept_from,
            exit_code=self.exit_code,
            locks=self.locks,
            after=self._after(),
            item="" if self.item is None else _shown(self.item),
        )

    def _after(self) -> list[str]:
        parent = self.parent
        if parent is None or parent.scope is None:
            return []
        return [f"{parent.id}.{name}" for name in parent.scope.plan.before[self.task.name]]


@dataclass(slots=True, eq=False)
class Scope:
    """The inside of a graph that runs."""

    plan: Plan
    parallelism: int
    fail_fast: bool
    nodes: dict[str, Node] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    """By task: how many that it waits for are not over."""
    open: int = 0
    entered: set[str] = field(default_factory=set)
    """Tasks that run now."""
    queue: deque[str] = field(default_factory=deque)
    failed: bool = False

    def __post_init__(self) -> None:
        self.left = {name: len(before) for name, before in self.plan.before.items()}
        self.open = len(self.left)


@dataclass(slots=True, eq=False)
class Many:
    """The inside of a loop that runs."""

    items: list[Any]
    parallelism: int
    nodes: list[Node] = field(default_factory=list)
    next: int = 0
    open: int = 0


def there(value: T | None) -> T:
    """Return *value*, which is there by the kind of step that it belongs to.

    Raises:
        LookupError: when it is not: a fault of the caller's.
    """
    if value is None:
        raise LookupError("a step lacks what its kind has")
    return value


def _shown(item: Any) -> str:
    import json

    return json.dumps(item, ensure_ascii=False, sort_keys=True)[:200]


def history(nodes: Iterable[Node], began: float) -> dict[str, Any]:
    """Return what exit tasks see of what came before them: how long it took, what failed."""
    mine = [one for one in nodes if one.is_leaf and not one.is_exit]
    ends = [one.finished for one in mine if one.finished is not None]
    failures = [
        {
            "displayName": one.task.name,
            "message": one.message,
            "templateName": one.task.template,
            "phase": "Failed",
            "podName": one.object,
            "finishedAt": timestamp.show(one.finished or began),
        }
        for one in mine
        if one.phase in ("Failed", "Stopped")
    ]
    return {"duration": max(ends, default=began) - began, "failures": failures}
