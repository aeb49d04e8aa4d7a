"""A process of controllers: shared informers, one leader, health, metrics, an orderly end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.kube.cache import Index
from lockstep.kube.client import Client
from lockstep.kube.election import Election, Timing
from lockstep.kube.elector import Elector
from lockstep.kube.events import Recorder
from lockstep.kube.identity import own_identity
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller
from lockstep.runtime.endpoints import Endpoints, Ports
from lockstep.runtime.health import Health
from lockstep.runtime.metrics import Metrics
from lockstep.runtime.reconciler import Writer

T = TypeVar("T", bound=Wire)


Task = Callable[[], Awaitable[None]]

FIRST_TRY_SECONDS = 2.0
"""How long reading may wait until it is known who leads."""
DRAIN_SECONDS = 5.0
"""How long calls that are under way may take to finish when the process is told to end."""


class Manager:
    """Runs controllers and tasks over shared informers, if wanted only while it leads.

    A leader that cannot renew its lease stops writing before another process may take it: its
    controllers are cancelled, and the client refuses writes.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        identity: str | None = None,
        leader_elect: bool = True,
        lease_namespace: str = SYSTEM_NAMESPACE,
        ports: Ports | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.name = name
        self.client = client
        self.metrics = Metrics()
        self.identity = identity or own_identity()
        health = Health(self._problems, self.metrics.exposition)
        self.endpoints = Endpoints(ports or Ports(), health, client)
        self._informers: dict[tuple[object, ...], Informer[Any]] = {}
        self._controllers: list[Controller] = []
        self._tasks: list[Task] = []
        self._always: list[Task] = []
        self._recorders: dict[str, Recorder] = {}
        self._following: list[asyncio.Task[None]] = []
        self._broken: asyncio.Future[None] | None = None
        """While this runs: fails when an informer has ended."""
        self._synced = asyncio.Event()
        self._elector: Elector | None = None
        if leader_elect:
            election = Election(self.identity, timing)
            self._elector = Elector(client, election, namespace=lease_namespace, name=name)
            self.metrics.watch_leader(name, lambda: self.leading)
        client.observe(self.metrics.request)

    @property
    def leading(self) -> bool:
        """Whether controllers may write: this process leads, or there is no election."""
        return self._elector is None or self._elector.leading

    @property
    def led_since(self) -> float:
        """Return since what time of the event loop this process leads, if it does."""
        return 0.0 if self._elector is None else self._elector.led_since

    def informer(
        self,
        res: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        indices: Mapping[str, Index] | None = None,
        transform: Callable[[T], T] | None = None,
        fresh: bool = False,
        optional: bool = False,
    ) -> Informer[T]:
        """Return the informer of a collection: one for all who ask for the same.

        A *fresh* one begins with nothing older than its own beginning. Of an *optional* one the
        server may lack the kind. One that is asked for while the manager runs starts at once;
        ``wait_synced`` tells when it is complete.
        """
        key = (res, namespace, label_selector, field_selector, transform)
        if key not in self._informers:
            self._informers[key] = Informer(
                self.client,
                res,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                transform=transform,
            )
            self.metrics.watch_informer(res.plural, self._informers[key])
            if self._broken is not None:
                self._follow(self._informers[key])
        informer = cast("Informer[T]", self._informers[key])
        informer.fresh = informer.fresh or fresh
        informer.optional = informer.optional or optional
        for name, function in (indices or {}).items():
            informer.add_index(name, function)
        return informer

    def recorder(self, component: str | None = None) -> Recorder:
        """Return the recorder of events for *component*, by default this manager's name."""
        component = component or self.name
        if component not in self._recorders:
            self._recorders[component] = Recorder(self.client, component)
        return self._recorders[component]

    def writer(self, component: str | None = None) -> Writer:
        """Return what carries the decisions of *component* out."""
        return Writer(self.client, self.recorder(component))

    def add(self, controller: Controller) -> None:
        """Run *controller* while this process leads."""
        controller.observer = self.metrics
        self._controllers.append(controller)

    def add_task(self, task: Task, *, always: bool = False) -> None:
        """Run *task()* while this process leads; it must last until it is cancelled.

        One that is to run *always*, also while another process leads, must not write.
        """
        (self._always if always else self._tasks).append(task)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until cancelled; *ready* is told once every informer is synced.

        Raises:
            OSError: when a port is taken.
            ConfigError: when the certificate for metrics cannot be used.
            Exception: what a task raised; controllers try again by themselves.
        """
        await self.endpoints.start()
        leading = asyncio.create_task(self._run_election())
        try:
            if self._elector is not None:
                await self._first_try(self._elector, leading)
            broken = self._broken = asyncio.get_running_loop().create_future()
            for informer in self._informers.values():
                self._follow(informer)
            for task in self._always:
                self._keep(asyncio.create_task(_run(task)))
            await self._first_sync([broken, leading])
            ready(f"{self.name} is synced")
            self._synced.set()
            await _first_to_end([broken, leading])
        finally:
            self._broken = None
            await _cancel([leading])
            for recorder in self._recorders.values():
                await recorder.close()
            await _cancel(self._following)
            await self.endpoints.close()

    def _follow(self, informer: Informer[Any]) -> None:
        self._keep(asyncio.create_task(informer.run()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        task.add_done_callback(self._no_longer_followed)
        self._following.append(task)

    def _no_longer_followed(self, task: asyncio.Task[None]) -> None:
        """End everything when an informer has ended: nothing may be decided by what it holds."""
        if task.cancelled() or self._broken is None or self._broken.done():
            return
        error = task.exception() or RuntimeError("an informer or a task ended by itself")
        self._broken.set_exception(error)

    def _problems(self) -> list[str]:
        return [
            f"{informer.resource.plural}: {informer.problem or 'not synced yet'}"
            for informer in self._informers.values()
            if not informer.synced
        ]

    async def _run_election(self) -> None:
        if self._elector is None:
            await self._lead()
        else:
            self.client.fence(self._elector.check)
            await self._elector.run(self._lead)

    async def _first_try(self, elector: Elector, leading: asyncio.Task[None]) -> None:
        """Give the election a moment before anything is read.

        What a leader reads from then on holds all that its predecessor wrote, and need not be
        read a second time.
        """
        tried = asyncio.create_task(elector.tried.wait())
        first: list[asyncio.Future[Any]] = [tried, leading]
        await asyncio.wait(first, timeout=FIRST_TRY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        tried.cancel()

    async def _first_sync(self, others: Sequence[asyncio.Future[None]]) -> None:
        """Wait until all is read; raise what one of *others* ends with before that."""
        waits = [asyncio.create_task(one.wait_synced()) for one in self._informers.values()]
        try:
            await _first_to_end([*others, asyncio.gather(*waits)])
        finally:
            await _cancel(waits)
        # What the caches hold lives as long as the process: the collector need not walk it, not
        # even now, while work may be waiting.
        gc.freeze()

    async def _lead(self) -> None:
        await self._synced.wait()
        controllers = [asyncio.create_task(one.run()) for one in self._controllers]
        tasks = [asyncio.create_task(_run(task)) for task in self._tasks]
        everything: list[asyncio.Task[None]] = [*controllers, *tasks]
        if not everything:
            await asyncio.Event().wait()
        try:
            done, _ = await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            raise RuntimeError(f"a task of {self.name} ended by itself")
        finally:
            await _cancel(tasks)
            await self._drain(controllers)

    async def _drain(self, controllers: Sequence[asyncio.Task[None]]) -> None:
        """Let calls that are under way finish, as long as this process may still write."""
        if controllers and self.leading:
            for controller in self._controllers:
                controller.drain()
            await asyncio.wait(controllers, timeout=DRAIN_SECONDS)
        await _cancel(controllers)


async def _first_to_end(futures: Sequence[asyncio.Future[Any]]) -> None:
    done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    for future in done:
        future.result()


async def _run(task: Task) -> None:
    await task()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
