"""A run as a machine of states: told what happened, it says what is to be done.

It is built anew from a run's spec and the records of its steps: the graph is walked again from its
start, and a step that a record knows the end of ends at once. What is decided therefore depends on
nothing but the spec, the records and what was observed, and costs the steps that hang on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from lockstep.api.pipeline import PipelineRunSpec, StepStatus, Task
from lockstep.pipelines.core.graphs import Graphs
from lockstep.pipelines.core.locks import Locks
from lockstep.pipelines.core.nodes import Node
from lockstep.pipelines.core.steps import Keyed, Lookup
from lockstep.pipelines.core.told import FAULTS, Action, Remove, Run, Seen
from lockstep.pipelines.core.values import BadExpression, render


class Engine(Graphs):
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
        locks: Locks | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(
            run, spec, records=records, key_of=key_of, kept=kept, locks=locks, limits=limits
        )
        self._plans = {}
        task = Task(name=spec.entry, template=spec.entry)
        entry = spec.templates[spec.entry]
        self.root = self._node(spec.entry, task, entry, None, now)
        self.root.inputs = dict(spec.arguments)
        self._later(self._start)
        self._work(now)

    def _start(self, now: float) -> None:
        root = self.root
        try:
            for name, value in root.template.defaults.items():
                if name not in root.inputs:
                    root.inputs[name] = render(value, self.variables(root))
        except BadExpression as error:
            self._end(root, "Failed", now, message=str(error))
            return
        self._launch(root, now)

    def observe(self, step: str, attempt: int, seen: Seen, now: float) -> None:
        """Take how the try *attempt* of *step* is doing."""
        node = self.nodes.get(step)
        if node is None or node.over or node.attempt != attempt or not node.is_leaf:
            return
        if node.phase == "Waiting":
            return
        if node.is_daemon and seen.phase == "Running" and seen.address:
            self._progress(node, seen, now)
            words = "it goes on until the graph around it is over"
            self._end(node, "Succeeded", now, message=words, outputs={"ip": seen.address})
        elif seen.phase in ("Pending", "Running"):
            self._progress(node, seen, now)
        elif seen.phase == "Succeeded":
            node.exit_code = 0
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
        self._unblock(now)
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
        for node in [*self._ready, *self.blocked]:
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

    def take(self) -> list[Action]:
        """Return what is to be done, once."""
        found, self.actions = self.actions, []
        return found

    @property
    def active(self) -> Iterator[Node]:
        """The steps that have a pod or an object which is not over."""
        return (n for n in self.nodes.values() if n.phase in ("Pending", "Running") and n.is_leaf)

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
