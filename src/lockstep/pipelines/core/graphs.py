"""Graphs and loops: which of their steps may start, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from lockstep.api.pipeline import Graph, Loop, StepPhase, Task
from lockstep.pipelines.core.nodes import Many, Node, Scope, there
from lockstep.pipelines.core.plan import Plan, plan
from lockstep.pipelines.core.steps import Steps, is_true
from lockstep.pipelines.core.told import DEPTH, MOST, Remove
from lockstep.pipelines.core.values import BadExpression, render

_GOOD: Final = frozenset({"Succeeded", "Skipped"})


class Graphs(Steps):
    """The graphs and loops of one run."""

    _plans: dict[str, Plan]

    def _launch(self, node: Node, now: float) -> None:
        """Start *node*, whose inputs are known."""
        if node.over or not self._lock(node, now):
            return
        if node.kind == "Graph":
            self._open(node, now)
        elif node.kind == "Values":
            node.started = now
            self._finish_values(node, now)
        else:
            self._ready.append(node)

    def _open(self, node: Node, now: float) -> None:
        graph = there(node.template.graph)
        if node.id.count(".") > DEPTH:
            self._end(node, "Failed", now, message=f"more than {DEPTH} graphs within each other")
            return
        if len(self.nodes) + len(graph.tasks) > MOST:
            self._end(node, "Failed", now, message=f"the run has more than {MOST} steps")
            return
        found = self._plan(node.task.template, graph)
        node.phase, node.started = "Running", self._recorded_start(node, now)
        self.changed.add(node.id)
        node.scope = Scope(found, graph.parallelism, graph.fail_fast)
        for name, task in found.tasks.items():
            template = self.spec.templates[task.template]
            child = self._node(f"{node.id}.{name}", task, template, node, now)
            node.scope.nodes[name] = child
        for name, left in node.scope.left.items():
            if left == 0:
                self._later(partial(self._free, node, name))
        if not found.tasks:
            self._later(partial(self._close, node))

    def _plan(self, name: str, graph: Graph) -> Plan:
        found = self._plans.get(name)
        if found is None:
            found = self._plans[name] = plan(graph)
        return found

    def _free(self, graph: Node, name: str, now: float) -> None:
        """Decide on a task whose predecessors are all over."""
        scope = there(graph.scope)
        node, task = scope.nodes[name], scope.plan.tasks[name]
        if node.over:
            return
        try:
            outcome = self._decline(graph, task)
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return
        if outcome is not None:
            self._end(node, outcome, now)
        elif scope.parallelism and len(scope.entered) >= scope.parallelism and not task.exit:
            scope.queue.append(name)
        else:
            scope.entered.add(name)
            self._later(partial(self._enter, node))

    def _decline(self, graph: Node, task: Task) -> StepPhase | None:
        """Return how a task ends without running; none when it runs."""
        scope = there(graph.scope)
        if task.exit:
            return None
        if self.stopping and not graph.is_exit:
            return "Omitted"
        if task.needs:
            variables = self._around(graph, task)
            return None if is_true(task.needs, variables) else "Omitted"
        states = [scope.nodes[before].phase for before in scope.plan.before[task.name]]
        if scope.failed and scope.fail_fast:
            return "Omitted"
        fine = [
            state in _GOOD or scope.plan.tasks[before].may_fail
            for state, before in zip(states, scope.plan.before[task.name], strict=True)
        ]
        return None if all(fine) else "Omitted"

    def _enter(self, node: Node, now: float) -> None:
        """Start a task: once, or for each item."""
        if node.over:
            return
        graph = there(node.graph())
        task = node.task
        try:
            if task.loop is not None:
                self._fan_out(node, graph, task.loop, now)
                return
            variables = self._around(graph, task)
            if task.when and not is_true(task.when, variables):
                self._end(node, "Skipped", now)
                return
            node.inputs = self._arguments(node, variables)
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return
        self._launch(node, now)

    def _fan_out(self, node: Node, graph: Node, loop: Loop, now: float) -> None:
        found = render(loop.items, self._around(graph, node.task, itemless=True))
        items = _list(found)
        if len(self.nodes) + len(items) > MOST:
            raise BadExpression(f"{len(items)} items: a run has at most {MOST} steps")
        node.many = Many(items, loop.parallelism)
        node.many.open = len(items)
        node.phase, node.started = "Running", self._recorded_start(node, now)
        self.changed.add(node.id)
        self._advance(node, now)

    def _advance(self, node: Node, now: float) -> None:
        """Start the items of a loop that may run now."""
        many = there(node.many)
        if many.open == 0:
            self._close_loop(node, now)
            return
        started = sum(not one.over for one in many.nodes) if many.parallelism else 0
        while many.next < len(many.items):
            if many.parallelism and started >= many.parallelism:
                return
            index, many.next, started = many.next, many.next + 1, started + 1
            task = _without_loop(node.task)
            child = self._node(f"{node.id}.{index}", task, node.template, node, now)
            child.item = many.items[index]
            many.nodes.append(child)
            if self.stopping and not child.is_exit:
                self._end(child, "Omitted", now)
            else:
                self._later(partial(self._enter_item, child))

    def _enter_item(self, node: Node, now: float) -> None:
        graph = there(node.graph())
        try:
            variables = {**self._around(graph, node.task), "item": node.item}
            if node.task.when and not is_true(node.task.when, variables):
                self._end(node, "Skipped", now)
                return
            node.inputs = self._arguments(node, variables)
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return
        self._launch(node, now)

    def _arguments(self, node: Node, variables: Mapping[str, Any]) -> dict[str, Any]:
        template = node.template
        found = {name: render(value, variables) for name, value in node.task.arguments.items()}
        for name, value in template.defaults.items():
            if found.get(name) is None:
                found[name] = render(value, {**variables, "inputs": found})
        for name in template.inputs:
            if name not in found:
                raise BadExpression(f"input {name} of {node.task.template} is not given")
        return found

    def _around(self, graph: Node, task: Task, *, itemless: bool = False) -> dict[str, Any]:
        """Return what the expressions of *task* see."""
        scope = there(graph.scope)
        before = scope.plan.before[task.name]
        tasks = {name: scope.nodes[name].view() for name in before}
        about = self._about(scope.nodes[task.name])
        found = {"inputs": graph.inputs, "tasks": tasks, "run": about}
        return found if itemless else {**found, "item": graph.item}

    def _tell(self, node: Node, now: float) -> None:
        """Let the graph or the loop that *node* is part of go on."""
        parent = node.parent
        if parent is None or parent.over:
            return
        if parent.many is not None:
            parent.many.open -= 1
            self._advance(parent, now)
            return
        scope = there(parent.scope)
        name = node.task.name
        bad = node.phase in ("Failed", "Stopped")
        if bad and name not in scope.plan.handled and not node.task.may_fail:
            scope.failed = True
        scope.open -= 1
        scope.entered.discard(name)
        for other in scope.plan.after[name]:
            scope.left[other] -= 1
            if scope.left[other] == 0:
                self._free(parent, other, now)
        while scope.queue and (not scope.parallelism or len(scope.entered) < scope.parallelism):
            self._free(parent, scope.queue.popleft(), now)
        if scope.open == 0:
            self._close(parent, now)

    def _close(self, node: Node, now: float) -> None:
        scope = there(node.scope)
        for one in [one for one in self._daemons if one.graph() is node]:
            self._daemons.remove(one)
            self.actions.append(Remove(one.id, one.attempt))
        bad = [
            one
            for name, one in scope.nodes.items()
            if one.phase in ("Failed", "Stopped")
            and name not in scope.plan.handled
            and not one.task.may_fail
        ]
        end = max((one.finished or now for one in scope.nodes.values()), default=now)
        if bad:
            stopped = all(one.phase == "Stopped" for one in bad)
            first = bad[0]
            words = f"{first.task.name}: {first.message}" if first.message else first.task.name
            self._end(node, "Stopped" if stopped else "Failed", end, message=words)
            return
        if self.stopping and any(one.phase == "Omitted" for one in scope.nodes.values()):
            self._end(node, "Stopped", end, message=self.why_stopped)
            return
        self._finish_values(node, end)

    def _finish_values(self, node: Node, now: float) -> None:
        scope = node.scope
        tasks = {} if scope is None else {name: one.view() for name, one in scope.nodes.items()}
        try:
            outputs = {
                name: render(value, {**self.variables(node), "tasks": tasks})
                for name, value in node.template.outputs.items()
            }
        except BadExpression as error:
            self._end(node, "Failed", now, message=f"outputs: {error}")
            return
        self._end(node, "Succeeded", now, outputs=outputs)

    def _close_loop(self, node: Node, now: float) -> None:
        many = there(node.many)
        bad = [one for one in many.nodes if one.phase in ("Failed", "Stopped")]
        end = max((one.finished or now for one in many.nodes), default=now)
        names = dict.fromkeys(name for one in many.nodes for name in one.outputs)
        outputs: dict[str, Any] = {
            name: [one.outputs[name] for one in many.nodes if one.outputs.get(name) is not None]
            for name in names
        }
        if bad:
            stopped = all(one.phase == "Stopped" for one in bad)
            words = f"item {bad[0].id.rpartition('.')[2]}: {bad[0].message}"
            self._end(node, "Stopped" if stopped else "Failed", end, message=words, outputs=outputs)
        elif self.stopping and many.nodes and any(o.phase == "Omitted" for o in many.nodes):
            self._end(node, "Stopped", end, message=self.why_stopped, outputs=outputs)
        else:
            self._end(node, "Succeeded", end, outputs=outputs)


def _without_loop(task: Task) -> Task:
    import msgspec

    return msgspec.structs.replace(task, loop=None)


def _list(value: Any) -> list[Any]:
    import json

    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise BadExpression(f"loop.items: {value[:100]!r} is no JSON: {error}") from error
    if not isinstance(value, list):
        raise BadExpression(f"loop.items: {str(value)[:100]!r} is not a list")
    return value
