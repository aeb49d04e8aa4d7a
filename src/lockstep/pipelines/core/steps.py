"""Steps that run by themselves: pods, objects and pauses, from their start to their end."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lockstep.api import duration, timestamp
from lockstep.api.dataset_cache import FETCHING
from lockstep.api.pipeline import (
    ENDED,
    Lock,
    PipelineRunSpec,
    StepPhase,
    StepStatus,
    Task,
    Template,
)
from lockstep.pipelines.core.locks import Locks
from lockstep.pipelines.core.nodes import Node, NodeKind, history
from lockstep.pipelines.core.plan import kind_of
from lockstep.pipelines.core.told import (
    EXPLAIN_EVERY,
    START_WITHIN,
    Action,
    Ensure,
    Explain,
    Kept,
    Remove,
    Run,
    Seen,
)
from lockstep.pipelines.core.values import BadExpression, evaluate, render, text_of

Keyed = Callable[[Any, Node], str]
Lookup = Callable[[str, Node], Kept | None]


class Steps(ABC):
    """The steps of one run, of all its graphs."""

    root: Node

    def __init__(
        self,
        run: Run,
        spec: PipelineRunSpec,
        *,
        records: Mapping[str, StepStatus] | None = None,
        key_of: Keyed | None = None,
        kept: Lookup | None = None,
        locks: Locks | None = None,
        limits: Mapping[str, int] | None = None,
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
        self.blocked: list[Node] = []
        """Steps that wait for a lock."""
        self.exported: dict[str, Any] = {}
        """Results of steps that are known to the whole run."""
        self._records = records or {}
        self._key_of, self._kept = key_of, kept
        self._locks, self._limits = locks or Locks(), limits or {}
        self._resumed = frozenset(spec.resumed)
        self._agenda: deque[Callable[[float], None]] = deque()
        self._ready: deque[Node] = deque()
        self._active = 0
        self._daemons: list[Node] = []
        """Steps that go on until the graph around them is over."""
        self._due: list[tuple[float, str, int, str]] = []

    def variables(self, node: Node) -> dict[str, Any]:
        """Return what the expressions of a step's template see."""
        return {"inputs": node.inputs, "run": self._about(node), "item": node.item}

    def _about(self, node: Node) -> dict[str, Any]:
        """Return what expressions see of the run: to exit tasks also how the rest ended."""
        scope = self.root.scope
        bad = self.stopping or (scope is not None and scope.failed)
        good = "Succeeded" if node.is_exit else "Running"
        about = history(self.nodes.values(), self.root.started or 0.0) if node.is_exit else {}
        return {
            **about,
            **self.run.variables(),
            "arguments": self.root.inputs,
            "serviceAccountName": self.spec.service_account_name or "default",
            "status": "Failed" if bad else good,
            "outputs": self.exported,
            "root": self.spec.root.rstrip("/"),
        }

    def _later(self, work: Callable[[float], None]) -> None:
        self._agenda.append(work)

    def _node(
        self, id_: str, task: Task, template: Template, parent: Node | None, now: float
    ) -> Node:
        kind: NodeKind = "Loop" if task.loop is not None else kind_of(template)
        node = Node(id_, task, template, kind, parent)
        self.nodes[id_] = node
        self.changed.add(id_)
        return node

    def _recorded_start(self, node: Node, now: float) -> float:
        record = self._records.get(node.id)
        return timestamp.parse(record.started_at) if record and record.started_at else now

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
        node.kept_from, node.exit_code = record.kept_from, record.exit_code
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
        if not seen.stuck:
            node.stuck = None
        elif node.stuck is None:
            node.stuck = now
            self._at(now + START_WITHIN, node, "start")
            if not seen.message:
                self._at(now + EXPLAIN_EVERY, node, "explain")
        message = seen.message or (node.message if seen.stuck else "")
        if seen.phase == "Running" and node.phase == "Pending":
            node.phase = "Running"
            if node.task.timeout is not None:
                self._limit_time(node, node.task.timeout, now)
        elif message == node.message:
            return
        node.message = message
        self.changed.add(node.id)

    def explain(self, step: str, attempt: int, why: str, now: float) -> None:
        """Take *why* the pod of a try does not start; data on its way is waited for."""
        node = self.nodes[step]
        if node.over or node.attempt != attempt or node.stuck is None:
            return
        if FETCHING in why:
            node.stuck = now
            self._at(now + START_WITHIN, node, "start")
        if why and why != node.message:
            node.message = why
            self.changed.add(node.id)

    def _limit_time(self, node: Node, given: str, now: float) -> None:
        """Let a try that runs end once its time is over; what is no duration limits nothing."""
        try:
            most = text_of(render(given, self.variables(node)))
            most = f"{most}s" if most.isdigit() else most
            self._at(now + duration.parse(most), node, f"time {most}")
        except ValueError as error:
            self.actions.append(Remove(node.id, node.attempt))
            self._end(node, "Failed", now, message=f"timeout: {error}")

    def _failed(self, node: Node, seen: Seen, now: float) -> None:
        node.exit_code = seen.exit_code
        retry = node.task.retry
        tried = node.attempt - node.faults
        last = {
            "exitCode": seen.exit_code or 0,
            "message": seen.message,
            "tries": tried + 1,
            "seconds": max(0, int(now - (node.started or now))),
        }
        try:
            wanted = tried < retry.limit and not self.stopping
            if wanted and retry.when:
                wanted = is_true(retry.when, {**self.variables(node), "last": last})
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
        node.attempt, node.stuck = node.attempt + 1, None
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
        elif what == "start" and node.stuck is not None and now >= node.stuck + START_WITHIN:
            self.actions.append(Remove(node.id, node.attempt))
            why = f"did not start within {START_WITHIN / 60:g} minutes: {node.message}"
            self._failed(node, Seen("Failed", why), now)
        elif what == "explain" and node.stuck is not None:
            self.actions.append(Explain(node.id, node.attempt))
            self._at(now + EXPLAIN_EVERY, node, "explain")
        elif what == "time" and node.phase == "Running":
            self.actions.append(Remove(node.id, node.attempt))
            self._failed(node, Seen("Failed", f"ran longer than {most}"), now)

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
        elif phase in ("Skipped", "Omitted") and node.template.pod is not None:
            node.outputs = {o.name: o.default for o in node.template.pod.outputs if o.default}
        for name, known in node.template.exports.items():
            if phase == "Succeeded" and name in node.outputs and node.many is None:
                self.exported[known] = node.outputs[name]
        if node.is_daemon and phase == "Succeeded":
            self._daemons.append(node)
        if node.template.locks and node.many is None:
            self._unlock(node)
        self.over += 1
        self.changed.add(node.id)
        self._later(partial(self._tell, node))

    # --- locks ---

    def locks_of(self, node: Node) -> dict[str, list[str]]:
        """Return the locks that *node* and the graphs around it hold, by holder."""
        found: dict[str, list[str]] = {}
        at: Node | None = node
        while at is not None:
            if at.locks:
                found[self._holder(at)] = at.locks
            at = at.parent
        return found

    def _holder(self, node: Node) -> str:
        return f"{self.run.uid}/{node.id}"

    def _lock(self, node: Node, now: float) -> bool:
        """Take the locks of *node*; return whether it has them. It waits where it has not."""
        record = self._records.get(node.id)
        if not node.template.locks or (record is not None and record.phase in ENDED):
            return True
        try:
            wanted = [self._wanted(one, node) for one in node.template.locks]
        except BadExpression as error:
            self._end(node, "Failed", now, message=str(error))
            return False
        why = self._locks.acquire(self._holder(node), wanted)
        if why and self.stopping and not node.is_exit:
            self._end(node, "Omitted", now)
        elif why:
            self.blocked.append(node)
        else:
            node.locks = [name for name, _ in wanted]
        if why != node.message and not node.over:
            node.message = why
            self.changed.add(node.id)
        return not why

    def _wanted(self, lock: Lock, node: Node) -> tuple[str, int]:
        name = text_of(render(lock.name, self.variables(node)))
        most = lock.limit
        if lock.limit_from:
            found = self._limits.get(lock.limit_from)
            if found is None:
                raise BadExpression(
                    f"lock {name}: no number is at {lock.limit_from} (ConfigMap/key)"
                )
            most = found
        return f"{self.run.namespace}/{name}", most

    def _unlock(self, node: Node) -> None:
        node.locks = []
        self._locks.release(self._holder(node))
        self._later(self._unblock)

    def _unblock(self, now: float) -> None:
        """Let the steps that wait for locks ask again."""
        waiting, self.blocked = self.blocked, []
        for node in waiting:
            if not node.over:
                self._launch(node, now)

    @abstractmethod
    def _launch(self, node: Node, now: float) -> None:
        """Start *node*, whose inputs are known."""

    @abstractmethod
    def _tell(self, node: Node, now: float) -> None:
        """Let what *node* is part of go on."""


def is_true(text: str, variables: Mapping[str, Any]) -> bool:
    """Return whether a condition holds.

    Raises:
        BadExpression: when it is neither true nor false.
    """
    found = evaluate(text, variables)
    if not isinstance(found, bool):
        raise BadExpression(f"{text!r}: is {str(found)[:100]!r} and not true or false")
    return found
