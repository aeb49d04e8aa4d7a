"""Campaigning for a Lease, and doing something only while it is held."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from lockstep.api.core import LEASES, NAMESPACES, Lease
from lockstep.kube.client import Client
from lockstep.kube.election import Election, Move, Observation
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeading
from lockstep.kube.identity import is_gone

log = logging.getLogger(__name__)

Lead = Callable[[], Awaitable[None]]


def boot_clock() -> float:
    """Return seconds that also pass while the machine sleeps, as they do for everybody else."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Elector:
    """Takes part in one election, and leads by running a task that ends when the lead does."""

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        namespace: str,
        name: str,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self._client = client.unfenced()
        self._election = election
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._rng = random.Random()  # noqa: S311 - jitter, not a secret
        self._version = ""
        self._task: asyncio.Task[None] | None = None
        self.tried = asyncio.Event()
        """Set once it is known for the first time whether this process leads."""
        self.led_since = 0.0
        """Since what time of the event loop this process leads, if it does."""

    @property
    def leading(self) -> bool:
        """Whether this process leads now."""
        return self._election.leads(self._clock())

    def check(self) -> None:
        """Let a write pass only while this process leads; it is the client's fence.

        Raises:
            NotLeading: when it does not lead (any more).
        """
        if not self.leading:
            raise NotLeading(f"{self._election.identity} does not hold the lease {self._name}")

    async def run(self, lead: Lead) -> None:
        """Campaign until cancelled; run *lead* whenever the lease is won, and cancel it in time.

        What *lead* raises is raised here. When *lead* is cancelled with this, the lease is
        given back, so that a successor need not wait.
        """
        try:
            while True:
                await self._campaign()
                await self._follow(lead)
                self.tried.set()
                await self._pause()
        finally:
            await self._stop()
            await self._give_back()

    async def _campaign(self) -> None:
        now = self._clock()
        fence = self._election.fence
        timing = self._election.timing
        limit = timing.fence if fence is None else fence - now
        try:
            async with asyncio.timeout(max(0.1, limit)):
                await self._move()
        except TimeoutError:
            log.warning("lease %s: no answer in time", self._name)
        except (Conflict, AlreadyExists):
            log.debug("lease %s: another process wrote it first", self._name)
        except ApiError as error:
            log.warning("lease %s: %s", self._name, error)

    async def _move(self) -> None:
        sent_at = self._clock()
        try:
            found: Lease | None = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            found = None
        gone = found is not None and is_gone(found.spec.holder_identity)
        move = self._election.observe(_observation(found), self._clock(), gone=gone)
        if move is Move.WAIT:
            return
        spec = self._election.spec(move, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        if found is None:
            lease = await self._create(spec)
        else:
            # The version in the patch makes the server refuse it when the lease has changed.
            patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": spec}
            lease = await self._client.patch(LEASES, self._name, patch, self._namespace)
        seen = _observation(lease)
        if seen is not None:
            self._election.renewed(seen, sent_at, self._clock())

    async def _create(self, spec: dict[str, object]) -> Lease:
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": spec}
        try:
            return await self._client.create(LEASES, body)
        except NotFound:
            space = {"metadata": {"name": self._namespace}}
            with contextlib.suppress(AlreadyExists):
                await self._client.create(NAMESPACES, space)
            return await self._client.create(LEASES, body)

    async def _follow(self, lead: Lead) -> None:
        leading = self.leading
        if leading and self._task is None:
            log.info("%s leads", self._election.identity)
            self.led_since = asyncio.get_running_loop().time()
            self._task = asyncio.ensure_future(_run(lead))
        elif not leading and self._task is not None:
            log.warning("%s no longer leads", self._election.identity)
            await self._stop()

    async def _pause(self) -> None:
        """Wait until the next attempt is due, the fence passes, or what leads has ended."""
        wait = self._election.timing.retry * self._rng.uniform(0.8, 1.2)
        if self._task is None:
            await asyncio.sleep(wait)
            return
        fence = self._election.fence
        left = 0.0 if fence is None else fence - self._clock()
        await asyncio.wait([self._task], timeout=max(0.0, min(wait, left)))
        if self._task.done():
            self._task.result()
            raise RuntimeError("what leads has ended by itself")

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is None or task.done():
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _give_back(self) -> None:
        if not self.leading:
            return
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(2.0):
                found = await self._client.get(LEASES, self._name, self._namespace)
                if found.spec.holder_identity != self._election.identity:
                    return
                version = found.metadata.resource_version
                patch = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": ""}}
                await self._client.patch(LEASES, self._name, patch, self._namespace)
        self._election.lost()


async def _run(lead: Lead) -> None:
    await lead()


def _observation(lease: Lease | None) -> Observation | None:
    return None if lease is None else Observation(lease.metadata.resource_version, lease.spec)
