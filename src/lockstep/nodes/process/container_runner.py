"""Keeping one container: starting, probing and stopping it, and knowing how it is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from lockstep.nodes.process import logs, prober
from lockstep.nodes.process.facts import ContainerFacts, Hindrance, Run
from lockstep.nodes.process.health import Health, Kind, probes
from lockstep.nodes.process.home import RunHome
from lockstep.nodes.process.images import Entry
from lockstep.nodes.process.orders import OrderBook, Orders, message_file
from lockstep.nodes.process.pod_lifecycle import retry
from lockstep.nodes.process.spec import Container, Handler, Pod, Probe
from lockstep.nodes.process.supervision import StartError, Supervised, run_beside

SHORTEST_GRACE = 2.0
"""What is left for the signal when a hook took all of the grace."""
MESSAGE_BYTES = 4096
MESSAGE_LINES = 80

Say = Callable[[str, str, str], None]


class ContainerRunner:
    """One container of a pod on this node."""

    def __init__(
        self,
        pod: Pod,
        container: Container,
        book: OrderBook,
        image: Entry | None = None,
        *,
        changed: Callable[[], None],
        say: Say,
    ) -> None:
        self.pod, self.container, self.home, self.book = pod, container, book.home, book
        self.image = image
        self.changed, self.say = changed, say
        self.present: Run | None = None
        self.previous: Run | None = None
        self.hindrance: Hindrance | None = None
        self.backoff = 0.0
        self.health = Health.begin(container)
        self.failed_hook = ""
        self.hooked = True
        self.grace: float | None = None
        self.ended = asyncio.Event()
        self._supervised: Supervised | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def facts(self) -> ContainerFacts:
        """Return what is known of the container now."""
        unhealthy = self.failed_hook or self.health.unhealthy(self.container)
        return ContainerFacts(
            run=self.present,
            previous=self.previous,
            hindrance=self.hindrance,
            backoff=self.backoff,
            started=self.hooked and self.health.started,
            ready=self.hooked and self.health.ready,
            unhealthy=unhealthy,
            stopping=self.grace is not None,
        )

    # --- starting and finding again ---

    async def resume(self) -> None:
        """Learn from disk what became of the container, and take it up again if it runs."""
        homes = self.home.attempts(self.container.name)
        if homes and homes[-1].alive:
            await self._await_start(homes[-1])
        told = [(home, run) for home in homes if (run := home.run()) is not None]
        if not told:
            return
        if len(told) > 1:
            self.previous = told[-2][1]
        home, run = told[-1]
        if run.exit is None:
            supervised = Supervised.adopt(home)
            if supervised is not None:
                self._follow(home, run, supervised)
                return
            run = home.run() or run
        self._note_end(home, run)

    @staticmethod
    async def _await_start(home: RunHome) -> None:
        """Wait for a shim that was started a moment before the node ended."""
        for _ in range(500):
            if not home.alive or home.read("run") or home.read("exit"):
                return
            await asyncio.sleep(0.01)

    async def start(self, attempt: int, orders: Callable[[RunHome], dict[str, Any]]) -> None:
        """Start run number *attempt*; what goes wrong is kept, as a hindrance or as its end."""
        home = self.home.attempt(self.container.name, attempt)
        home.begin(self.backoff if self.present else None)
        prepared = orders(home)
        try:
            supervised = await asyncio.to_thread(Supervised.launch, home, prepared)
        except StartError as error:
            self._not_started(home, str(error))
            return
        self.home.forget_before(self.container.name, attempt - 1)
        self.previous = self.present
        self.hindrance = None
        self.say("Normal", "Started", f"Started container {self.container.name}")
        self._follow(home, Run(attempt, supervised.started, supervised.pid), supervised)

    def _not_started(self, home: RunHome, message: str) -> None:
        self.say("Warning", "Failed", f"Error: {message}")
        run = home.run()
        if run is None:
            self.hinder("CreateContainerError", message)
            return
        self.previous, self.hindrance = self.present, None
        self._note_end(home, run)

    def hinder(self, reason: str, message: str) -> None:
        """Note why the container cannot be started for now."""
        if self.hindrance is None or self.hindrance.message != message:
            self.say("Warning", "Failed", f"Error: {message}")
        self.hindrance = retry(self.hindrance, reason, message, time.time())

    def _follow(self, home: RunHome, run: Run, supervised: Supervised) -> None:
        self.present, self._supervised = run, supervised
        self.health = Health.begin(self.container)
        self.failed_hook, self.grace = "", None
        self.ended.clear()
        supervised.on_end(lambda: self._on_end(home))
        hook = self.container.lifecycle.post_start
        self.hooked = hook is None
        if hook is not None:
            self._spawn(self._post_start(hook))
        for kind, probe in probes(self.container).items():
            due = partial(self._due, kind)
            self._spawn(prober.keep_asking(kind, probe, self._probe, due, self._told))

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- while it runs ---

    async def beside(self, argv: list[str], timeout: float) -> tuple[int, str]:
        """Run a command beside the container's process."""
        if self.present is None or self.present.exit is not None:
            return 126, "the container does not run"
        return await run_beside(self.orders_beside(argv), timeout)

    def orders_beside(self, argv: list[str]) -> Orders:
        """Return the orders for a command beside the container's process, which must run.

        Raises:
            OSError: when it does not run any more.
        """
        if self.present is None:
            raise ProcessLookupError("the container does not run")
        return self.book.beside(self.pod, self.container, self.present.pid, argv, self.image)

    def _due(self, kind: Kind) -> bool:
        return self.health.due(kind)

    async def _probe(self, probe: Probe) -> prober.Result:
        address = self.home.record.address
        return await prober.ask(
            probe, self.container, address, self.beside, float(probe.timeout_seconds)
        )

    def _told(self, kind: Kind, probe: Probe, good: bool, why: str) -> None:
        before = self.facts
        self.health = self.health.count(kind, good, probe)
        if not good:
            self.say("Warning", "Unhealthy", f"{kind.value} probe failed: {why}")
        if self.facts != before:
            self.changed()

    async def _post_start(self, hook: Handler) -> None:
        good, why = await prober.ask(
            hook, self.container, self.home.record.address, self.beside, 3600.0
        )
        self.hooked = True
        if not good:
            self.failed_hook = "failed postStart hook"
            self.say("Warning", "FailedPostStartHook", f"PostStartHook failed: {why}")
        self.changed()

    # --- stopping and its end ---

    def stop(self, grace: float, why: str) -> None:
        """Begin to stop the container; a shorter grace than before hastens it."""
        if self.present is None or self.present.exit is not None:
            return
        if self.grace is not None and grace >= self.grace:
            return
        if self.grace is None:
            text = f"Stopping container {self.container.name}" + (f": {why}" if why else "")
            self.say("Normal", "Killing", text)
        hurried = self.grace is not None
        self.grace = grace
        if self._stopping is not None:
            self._stopping.cancel()
        self._stopping = asyncio.ensure_future(self._stop(grace, hook=not hurried))

    def kill(self) -> None:
        """Kill the container at once."""
        if self._supervised is not None:
            self._supervised.kill()

    async def _stop(self, grace: float, *, hook: bool) -> None:
        supervised = self._supervised
        if supervised is None:
            return
        until = time.monotonic() + grace
        action = self.container.lifecycle.pre_stop
        if hook and action is not None and grace > 0:
            await self._pre_stop(action, grace)
        supervised.stop()
        left = until - time.monotonic()
        wait = max(left, SHORTEST_GRACE) if grace > 0 else 0.0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), wait)
        if not self.ended.is_set():
            supervised.kill()

    async def _pre_stop(self, hook: Handler, grace: float) -> None:
        if hook.sleep is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), min(hook.sleep.seconds, grace))
            return
        good, why = await prober.ask(
            hook, self.container, self.home.record.address, self.beside, grace
        )
        if not good:
            self.say("Warning", "FailedPreStopHook", f"PreStopHook failed: {why}")

    def _on_end(self, home: RunHome) -> None:
        run = home.run()
        if run is not None:
            self._note_end(home, run)
        self.changed()

    def _note_end(self, home: RunHome, run: Run) -> None:
        self.release()
        if run.exit is not None:
            message = run.exit.message or self._message(home, run)
            run = replace(run, exit=replace(run.exit, message=message))
        self.present, self._supervised = run, None
        self.backoff = home.backoff(run)
        self.grace = None
        self.ended.set()

    def _message(self, home: RunHome, run: Run) -> str:
        """Return the container's last words: from its file, else from its log if it wants that."""
        file = message_file(self.container, home)
        if file is not None and file.exists():
            data = file.read_bytes()[:MESSAGE_BYTES]
            if data:
                return data.decode(errors="replace")
        failed = run.exit is not None and run.exit.code != 0
        if failed and self.container.termination_message_policy == "FallbackToLogsOnError":
            files = logs.files_of(self.home.log(self.container.name, run.attempt))
            lines = logs.last(files, MESSAGE_LINES)
            text = b"".join(logs.shown(iter(lines), logs.Query()))
            return text[-MESSAGE_BYTES // 2 :].decode(errors="replace")
        return ""

    def release(self) -> None:
        """Cancel probes and hooks; the container itself goes on."""
        for task in list(self._tasks):
            task.cancel()
        if self._stopping is not None and self._stopping is not asyncio.current_task():
            self._stopping.cancel()
        self._stopping = None

    def detach(self) -> None:
        """Stop following the container and leave it running."""
        self.release()
        if self._supervised is not None:
            self._supervised.detach()
            self._supervised = None
