"""Lives of a component: each goes wrong at a call as planned, and ends as a process ends."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Protocol

from tests.support.faults import Faults, Plan

from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.transport import Request

Run = Callable[[Client, Callable[[str], None]], Awaitable[None]]
"""A component: what its process does with a client, and whom it tells that it is ready."""
Tasks = weakref.WeakSet[asyncio.Task[Any]]

_OWNER: ContextVar[Tasks | None] = ContextVar("owner", default=None)


def _tagging(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """Make a task, and note whose it is: that of the component whose task made it."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    owner = _OWNER.get()
    if owner is not None:
        owner.add(task)
    return task


class Life(Protocol):
    """One life of a component, from its start until it is killed."""

    killed: asyncio.Event
    """Set at the call at which it was to be killed."""
    ready: asyncio.Event
    """Set when it has begun its work."""
    task: asyncio.Task[None]
    """Ends when the component ends by itself."""

    @property
    def requests(self) -> Sequence[Request]:
        """Return what was asked of the server so far."""

    @property
    def made_late(self) -> Sequence[Request]:
        """Return the creations that the server took when it had given them up."""

    @property
    def busy(self) -> bool:
        """Return whether something of it is on its way to the server or back."""

    async def kill(self) -> None:
        """End all of it at once: what would still be done at an orderly end is not."""


Begin = Callable[[ClusterConfig, Plan], Life]
"""Starts a component, by the configuration of a client and a plan of what goes wrong."""


class Incarnation:
    """A life in this process."""

    def __init__(self, run: Run, config: ClusterConfig, plan: Plan) -> None:
        self.killed = asyncio.Event()
        self.faults = Faults(plan, on_kill=self.killed.set)
        self.ready = asyncio.Event()
        self._client = Client(config, transport=self.faults.transport)
        self._tasks: Tasks = weakref.WeakSet()
        asyncio.get_running_loop().set_task_factory(_tagging)
        context = copy_context()
        context.run(_OWNER.set, self._tasks)
        life = run(self._client, lambda _: self.ready.set())
        self.task = asyncio.get_running_loop().create_task(_await(life), context=context)
        self._tasks.add(self.task)

    @property
    def requests(self) -> Sequence[Request]:
        """Return what was asked of the server so far."""
        return self.faults.requests

    @property
    def made_late(self) -> Sequence[Request]:
        """Return the creations that the server took when it had given them up."""
        return self.faults.made_late

    @property
    def busy(self) -> bool:
        """Return whether something of it is on its way to the server or back."""
        return self.faults.busy

    async def kill(self) -> None:
        """End all of its tasks."""
        self.faults.dead = True
        for _ in range(1000):
            alive = [task for task in self._tasks if not task.done()]
            if not alive:
                break
            for task in alive:
                task.cancel()
            await asyncio.sleep(0)
        else:
            raise AssertionError(f"cannot be ended: {alive}")
        await self._client.close()


async def _await(life: Awaitable[None]) -> None:
    await life


def in_process(run: Run) -> Begin:
    """Return what starts *run* as tasks of this process."""
    return partial(Incarnation, run)
