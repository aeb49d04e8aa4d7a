"""A run as a machine of states: told what happened, it says what is to be done.

It is built anew from a run's spec and the records of its steps: the graph is walked again from its
start, and a step that a record knows the end of ends at once. What is decided therefore depends on
nothing but the spec, the records and what was observed, and costs the steps that hang on it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from lockstep.api import duration, timestamp
from lockstep.api.pipeline import Loop, PipelineRunSpec, StepPhase, StepStatus, Task, Template
from lockstep.pipelines.core.nodes import Many, Node, NodeKind, Scope, there
from lockstep.pipelines.core.plan import Plan, kind_of, plan
from lockstep.pipelines.core.values import BadExpression, evaluate, render

DEPTH: Final = 64
"""Most graphs within graphs."""
MOST: Final = 50_000
"""Most steps of a run."""
FAULTS: Final = 5
"""Tries that a step may lose through no fault of its own."""
_GOOD: Final = frozenset({"Succeeded", "Skipped"})


@dataclass(frozen=True, slots=True)
class Seen:
    """How a step's pod or object is doing."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Lost"]
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a step gave before, and which."""

    outputs: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Run:
    """What expressions and names are made of."""

    name: str
    namespace: str
    uid: str
    created: str = ""

    def variables(self) -> dict[str, Any]:
        """Return what expressions see of it."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "created": self.created,
        }


@dataclass(frozen=True, slots=True)
class Ensure:
    """Make the pod or the object of a step's try, if it is not there."""

    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the pod or the object of a step's try."""

    step: str
    attempt: int


Action = Ensure | Remove
Keyed = Callable[["Engine", Node], str]
Lookup = Callable[[str, Node], Kept | None]


class Engine:
    """One run."""

    def __init__(
        self,
        run: Run,
        spec: PipelineRunSpec,
        now: float,
        *,
        records: Mapping[str, StepStatus] | None = None,
        key_of: Keyed | None = None,
        kept: Lookup | None = None,
    ) -> None:
        self.run, self.spec = run, spec
        self.nodes: dict[str, Node] = {}
        self.changed: set[str] = set()
        """Steps that changed since this was emptied last."""
        self.actions: list[Action] = []
        self.suspended = spec.desired == "Suspended"
        self.stopping = spec.desired == "Stopped"
        self.why_stopped = "the run is stopped"
        self.over = 0
        """How many steps are over."""
        self._records = records or {}
        self._key_of, self._kept = key_of, kept
        self._resumed = frozenset(spec.resumed)
        self._plans: dict[str, Plan] = {}
        self._agenda: deque[Callable[[float], None]] = deque()
        self._ready: deque[Node] = deque()
        self._active = 0
        self._due: list[tuple[float, str, int, str]] = []
        task = Task(name=spec.entry, template=spec.entry)
        entry = spec.templates[spec.entry]
        self.root = self._node(spec.entry, task, entry, None, now)
        self.root.inputs = {**entry.defaults, **spec.arguments}
        self._later(partial(self._launch, self.root))
        self._work(now)

    # --- what it is told ---

    def observe(self, step: str, attempt: int, seen: Seen, now: float) -> None:
        """Take how the try *attempt* of *step* is doing."""
        node = self.nodes.get(step)
        if node is None or node.over or node.attempt != attempt or not node.is_leaf:
            return
        if node.phase == "Waiting":
            return
        if seen.phase in ("Pending", "Running"):
            self._progress(node, seen, now)
        elif seen.phase == "Succeeded":
            self._end(node, "Succeeded", now, outputs=dict(seen.outputs))
        elif seen.phase == "Lost" and node.faults < FAULTS:
            node.faults += 1
            self._again(node, seen.message, 0.0, now)
        else:
            self._failed(node, seen, now)
        self._work(now)

    def tick(self, now: float) -> None:
        """Do what has become due."""
        while self._due and self._due[0][0] <= now:
            _, step, attempt, what = heapq.heappop(self._due)
            node = self.nodes.get(step)
            if node is not None and not node.over and node.attempt == attempt:
                self._fall_due(node, what, now)
        self._work(now)

    def due(self) -> float | None:
        """Return when `tick` has something to do."""
        return self._due[0][0] if self._due else None

    def stop(self, why: str, now: float) -> None:
        """End every step that runs, and start none but exit tasks."""
        if self.stopping:
            return
        self.stopping, self.why_stopped = True, why
        for node in [*self.nodes.values()]:
            if node.is_leaf and node.phase in ("Pending", "Running") and not node.is_exit:
                self.actions.append(Remove(node.id, node.attempt))
                self._end(node, "Stopped", now, message=why)
        for node in self._ready:
            if not node.is_exit:
                self._end(node, "Omitted", now)
        self._work(now)

    def suspend(self, suspended: bool, now: float) -> None:
        """Start no further step, or go on."""
        self.suspended = suspended
        self._work(now)

    def resume(self, steps: frozenset[str], now: float) -> None:
        """Let the suspended *steps* go on."""
        self._resumed = steps
        for node in [*self.nodes.values()]:
            if node.kind == "Suspend" and node.phase == "Running" and self._may_go_on(node):
                self._end(node, "Succeeded", now)
        self._work(now)

    # --- what it says ---

    def take(self) -> list[Action]:
        """Return what is to be done, once."""
        found, self.actions = self.actions, []
        return found

    @property
    def active(self) -> Iterator[Node]:
        """The steps that have a pod or an object which is not over."""
        return (n for n in self.nodes.values() if n.phase in ("Pending", "Running") and n.is_leaf)

    def variables(self, node: Node) -> dict[str, Any]:
        """Return what the expressions of a step's template see."""
        return {"inputs": node.inputs, "run": self._about(node), "item": node.item}

    def _about(self, node: Node) -> dict[str, Any]:
        """Return what expressions see of the run: to exit tasks also how the rest ended."""
        scope = self.root.scope
        bad = self.stopping or (scope is not None and scope.failed)
        good = "Succeeded" if node.is_exit else "Running"
        return {
            **self.run.variables(),
            "arguments": self.root.inputs,
            "serviceAccountName": self.spec.service_account_name or "default",
            "status": "Failed" if bad else good,
        }

    # --- going on ---

    def _later(self, work: Callable[[float], None]) -> None:
        self._agenda.append(work)

    def _work(self, now: float) -> None:
        while True:
            while self._agenda:
                self._agenda.popleft()(now)
            if not self._admit(now):
                return

    def _admit(self, now: float) -> bool:
        most = self.spec.parallelism
        if not self._ready or (self.suspended and not self.stopping):
            return False
        while self._ready and (most == 0 or self._active < most):
            node = self._ready.popleft()
            if not node.over:
                self._begin(node, now)
        return bool(self._agenda)

    def _node(
        self, id_: str, task: Task, template: Template, parent: Node | None, now: float
    ) -> Node:
        kind: NodeKind = "Loop" if task.loop is not None else kind_of(template)  # type: ignore[assignment]
        node = Node(id_, task, template, kind, parent)
        self.nodes[id_] = node
        self.changed.add(id_)
        return node

    def _launch(self, node: Node, now: float) -> None:
        """Start *node*, whose inputs are known."""
        if node.over:
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
        found = self._plans.get(node.task.template)
        if found is None:
            found = self._plans[node.task.template] = plan(graph)
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

    def _recorded_start(self, node: Node, now: float) -> float:
        record = self._records.get(node.id)
        return timestamp.parse(record.started_at) if record and record.started_at else now

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
            return None if _true(task.needs, variables) else "Omitted"
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
            if task.when and not _true(task.when, variables):
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
            if node.task.when and not _true(node.task.when, variables):
                self._end(node, "Skipped", now)
                return
            node.inputs = self._arguments(node, variables)
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return
        self._launch(node, now)

    def _arguments(self, node: Node, variables: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: render(value, variables) for name, value in node.task.arguments.items()}
        template = node.template
        found = {**template.defaults, **given}
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

    # --- leaves ---

    def _begin(self, node: Node, now: float) -> None:
        if self._recall(node, now):
            return
        if node.kind == "Suspend":
            self._wait(node, now)
            return
        try:
            known = self._known(node)
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return
        if known is not None:
            node.started, node.kept_from = now, known.source
            self._end(node, "Succeeded", now, outputs=dict(known.outputs))
            return
        node.started = now
        self._make(node, now)

    def _recall(self, node: Node, now: float) -> bool:
        """Go on from what is on record of a step; return whether there is anything."""
        record = self._records.get(node.id)
        if record is None or record.phase == "Waiting":
            return False
        node.started = timestamp.parse(record.started_at) if record.started_at else now
        node.attempt, node.faults, node.object = record.attempt, record.faults, record.object
        node.kept_from = record.kept_from
        if record.phase in ("Succeeded", "Failed", "Stopped"):
            end = timestamp.parse(record.finished_at) if record.finished_at else now
            self._end(node, record.phase, end, message=record.message, outputs=record.outputs)
            return True
        if node.kind == "Suspend":
            self._wait(node, now)
            return True
        if self._key_of is not None and node.task.keep is not None:
            node.key = self._key_of(self, node)
        self._make(node, now, since=node.started)
        return True

    def _wait(self, node: Node, now: float) -> None:
        node.phase, node.started = "Running", node.started or now
        node.message = "waits to be resumed"
        self._active += 1
        self.changed.add(node.id)
        pause = node.template.suspend
        if self._may_go_on(node):
            self._end(node, "Succeeded", now)
        elif pause is not None and pause.duration is not None:
            node.message = f"waits for {pause.duration}"
            self._at(node.started + duration.parse(pause.duration), node, "waited")

    def _may_go_on(self, node: Node) -> bool:
        return bool({"*", node.id, node.task.name} & self._resumed)

    def _known(self, node: Node) -> Kept | None:
        if node.task.keep is None or not self.spec.keep_results or self._key_of is None:
            return None
        node.key = self._key_of(self, node)
        return self._kept(node.key, node) if self._kept is not None else None

    def _make(self, node: Node, now: float, since: float | None = None) -> None:
        node.phase, node.message = "Pending", ""
        self._active += 1
        self.changed.add(node.id)
        self.actions.append(Ensure(node.id, node.attempt))
        most = node.task.max_wait or self.spec.max_wait
        if most is not None:
            self._at((since or now) + duration.parse(most), node, f"place {most}")

    def _progress(self, node: Node, seen: Seen, now: float) -> None:
        if seen.phase == "Running" and node.phase == "Pending":
            node.phase = "Running"
            if node.task.timeout is not None:
                most = node.task.timeout
                self._at(now + duration.parse(most), node, f"time {most}")
        elif seen.message == node.message:
            return
        node.message = seen.message
        self.changed.add(node.id)

    def _failed(self, node: Node, seen: Seen, now: float) -> None:
        retry = node.task.retry
        tried = node.attempt - node.faults
        last = {"exitCode": seen.exit_code or 0, "message": seen.message, "tries": tried + 1}
        try:
            wanted = tried < retry.limit and not self.stopping
            if wanted and retry.when:
                wanted = _true(retry.when, {**self.variables(node), "last": last})
        except BadExpression as error:
            self._end(node, "Failed", now, message=f"{seen.message}; retry.when: {error}")
            return
        if not wanted:
            self._end(node, "Failed", now, message=seen.message)
            return
        pause = duration.parse(retry.backoff) * retry.factor**tried if retry.backoff else 0.0
        if retry.longest is not None:
            pause = min(pause, duration.parse(retry.longest))
        self._again(node, seen.message, pause, now)

    def _again(self, node: Node, why: str, pause: float, now: float) -> None:
        node.attempt += 1
        node.message = f"tried again: {why}"
        self.changed.add(node.id)
        if pause <= 0:
            node.phase = "Pending"
            self.actions.append(Ensure(node.id, node.attempt))
        else:
            node.phase = "Pending"
            self._at(now + pause, node, "again")

    def _at(self, when: float, node: Node, what: str) -> None:
        heapq.heappush(self._due, (when, node.id, node.attempt, what))

    def _fall_due(self, node: Node, what: str, now: float) -> None:
        what, _, most = what.partition(" ")
        if what == "again":
            self.actions.append(Ensure(node.id, node.attempt))
        elif what == "waited":
            self._end(node, "Succeeded", now)
        elif what == "place" and node.phase == "Pending":
            self.actions.append(Remove(node.id, node.attempt))
            why = f"waited longer than {most} for its place"
            self._end(node, "Failed", now, message=f"{why}: {node.message}".rstrip(": "))
        elif what == "time" and node.phase == "Running":
            self.actions.append(Remove(node.id, node.attempt))
            self._failed(node, Seen("Failed", f"ran longer than {most}"), now)

    # --- ends ---

    def _end(
        self,
        node: Node,
        phase: StepPhase,
        now: float,
        *,
        message: str = "",
        outputs: Mapping[str, Any] | None = None,
    ) -> None:
        if node.over:
            return
        if node.is_leaf and node.phase in ("Pending", "Running"):
            self._active -= 1
        node.phase, node.message = phase, message
        node.finished = now
        if outputs is not None:
            node.outputs = dict(outputs)
        self.over += 1
        self.changed.add(node.id)
        self._later(partial(self._tell, node))

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
            name: [one.outputs[name] for one in many.nodes if name in one.outputs] for name in names
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


def _true(text: str, variables: Mapping[str, Any]) -> bool:
    found = evaluate(text, variables)
    if not isinstance(found, bool):
        raise BadExpression(f"{text!r}: is {str(found)[:100]!r} and not true or false")
    return found
