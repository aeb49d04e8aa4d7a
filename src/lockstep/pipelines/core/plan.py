"""What can be said of a graph before it runs: what waits for what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lockstep.api.pipeline import Graph, Task, Template
from lockstep.pipelines.core.values import expressions, tasks_in


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph's tasks by name, and how they hang together."""

    tasks: dict[str, Task]
    before: dict[str, tuple[str, ...]]
    """By task: those that must be over first, in order."""
    after: dict[str, list[str]]
    """By task: those that wait for it."""
    handled: frozenset[str]
    """Tasks of which another says what is to follow when they fail."""


def plan(graph: Graph) -> Plan:
    """Return the plan of *graph*; it may be wrong: `check` tells."""
    before = {task.name: tuple(_before(task)) for task in graph.tasks}
    after: dict[str, list[str]] = {task.name: [] for task in graph.tasks}
    for name, others in before.items():
        for other in others:
            if other in after:
                after[other].append(name)
    handled = {name for task in graph.tasks if not task.exit for name in tasks_in(task.needs)}
    tasks = {task.name: task for task in graph.tasks}
    return Plan(tasks, before, after, frozenset(handled))


def texts(task: Task) -> Iterator[str]:
    """Yield the expressions of *task*."""
    yield from expressions(task.arguments)
    yield from (text for text in (task.when, task.needs) if text)
    if task.loop is not None:
        yield from expressions(task.loop.items)


def _before(task: Task) -> Iterator[str]:
    found = dict.fromkeys(task.after)
    for text in texts(task):
        found |= dict.fromkeys(sorted(tasks_in(text)))
    return iter(found)


def cycle(found: Plan) -> list[str]:
    """Return tasks of which each waits for the next and the last for the first; or nothing."""
    left = {name: sum(b in found.tasks for b in before) for name, before in found.before.items()}
    free = [name for name, count in left.items() if count == 0]
    while free:
        for name in found.after[free.pop()]:
            left[name] -= 1
            if left[name] == 0:
                free.append(name)
    stuck = {name for name, count in left.items() if count > 0}
    if not stuck:
        return []
    walked: list[str] = []
    at = min(stuck)
    while at not in walked:
        walked.append(at)
        at = next(b for b in found.before[at] if b in stuck)
    return walked[walked.index(at) :]


def kind_of(template: Template) -> Literal["Pod", "Object", "Graph", "Suspend", "Values"]:
    """Return what runs a template: Pod, Object, Graph, Suspend or Values."""
    if template.graph is not None:
        return "Graph"
    if template.pod is not None:
        return "Pod"
    if template.object is not None:
        return "Object"
    return "Values" if template.suspend is None else "Suspend"
