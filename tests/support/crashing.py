"""Playing a scenario once for each call that a component makes, with something wrong at that call.

The component runs in this process but ends as a process does: at a call, with every task of it, and
nothing of it is left but what the server knows. Then it starts anew. However it went, the scenario
must end as it does when nothing goes wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.apiserver import ApiServer
from tests.support.audit import Audit
from tests.support.emptying import empty
from tests.support.faults import Break, Fault, Kill, Only, Plan, Weather, nothing
from tests.support.lives import Begin, Incarnation, Life, Run
from tests.support.waiting import eventually
from tests.support.witness import told, witnessed

from lockstep.api.names import ATTEMPT_LABEL
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.transport import Request

DEADLINE = 60.0
ENOUGH = 2
"""Failures after which no more are looked for: each of them lasts as long as the deadline."""
QUIET, LONG_QUIET = 0.06, 0.5
"""Seconds without a call after which nothing more is to be expected; the longer for the end that
all others are compared with."""


@dataclass
class Stage:
    """What a scenario is played on."""

    client: Client
    config: ClusterConfig
    audit: Audit
    begin: Begin
    plan: Plan
    beside: Sequence[Incarnation] = ()
    """The parts that nothing happens to."""
    lives: list[Life] = field(default_factory=list)
    seen: dict[str, object] = field(default_factory=dict)
    """What a story saw on its way and its outcome is held against."""
    _supervisor: asyncio.Task[None] | None = None
    _joined: list[Incarnation] = field(default_factory=list)

    def join(self, part: Run) -> None:
        """Start a part that nothing happens to, for this run."""
        self._joined.append(Incarnation(part, self.config, nothing))

    def start(self) -> None:
        """Start the component; it is started again whenever it was killed."""
        self._supervisor = asyncio.create_task(self._supervise())

    async def _supervise(self) -> None:
        plan = self.plan
        while True:
            life = self.begin(self.config, plan)
            self.lives.append(life)
            killed = asyncio.create_task(life.killed.wait())
            try:
                await asyncio.wait([killed, life.task], return_when=asyncio.FIRST_COMPLETED)
            finally:
                killed.cancel()
                await life.kill()
            if not life.killed.is_set():
                life.task.result()
                raise AssertionError("the component ended by itself")
            if not isinstance(plan, Weather):
                # Only the first life is disturbed: what it left behind is what is looked at.
                plan = nothing

    def made(self) -> dict[tuple[str, str], int]:
        """Return how often each pod was made, by name and attempt of its job.

        No controller can forestall that a creation on its way comes after the end of what was
        created in its stead: that it makes the pod once more is left out.
        """
        late = [
            json.loads(r.body or b"")["metadata"] for life in self.lives for r in life.made_late
        ]
        again = {(meta["name"], meta.get("labels", {}).get(ATTEMPT_LABEL, "")) for meta in late}
        return {
            which: number - (number > 1 and which in again)
            for which, number in self.audit.made.items()
        }

    async def until(self, probe: Callable[[], Awaitable[Any]], what: str) -> Any:
        """Wait for *probe* to be true, while the component lives or is started again."""
        async with witnessed(self.client):
            return await eventually(lambda: self._checked(probe), DEADLINE, what)

    async def _checked(self, probe: Callable[[], Awaitable[Any]]) -> Any:
        if self._supervisor is not None and self._supervisor.done():
            self._supervisor.result()
        for other in (*self.beside, *self._joined):
            if other.task.done():
                other.task.result()
        return await probe()

    async def quiet(self, seconds: float = QUIET) -> None:
        """Wait until no part has made a call for so long, other than about leases.

        By then one that was killed has begun anew, and what was on its way late has arrived.
        """
        loop = asyncio.get_running_loop()
        seen, since = -1, 0.0

        async def still() -> bool:
            nonlocal seen, since
            every: list[Life] = [*self.lives, *self.beside, *self._joined]
            now = sum(not _renews(r) for life in every for r in life.requests)
            last = self.lives[-1]
            begun = last.ready.is_set() and not last.killed.is_set()
            if now != seen or not begun or any(life.busy for life in every):
                seen, since = now, loop.time()
            return loop.time() - since >= seconds

        await self.until(still, "no more calls")

    async def close(self) -> None:
        """End the component."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
        for other in self._joined:
            await other.kill()


def _renews(request: Request) -> bool:
    return "/leases" in request.target


@dataclass(frozen=True)
class Scenario:
    """What happens around a component, and how to tell how it ended."""

    begin: Begin
    play: Callable[[Stage], Awaitable[None]]
    """Starts the component, does what users do, and returns after the last of it."""
    outcome: Callable[[Stage], Awaitable[object]]
    """Everything that must be the same however it went."""
    beside: tuple[Run, ...] = ()
    """Parts that nothing happens to; they go on from one run to the next."""
    keeps_nodes: bool = False
    """Whether the nodes do so too, because one of those parts makes them."""


@dataclass(frozen=True)
class Point:
    """A call at which something goes wrong."""

    number: int
    request: Request
    fault: Fault

    def __str__(self) -> str:
        path = self.request.target.partition("?")[0]
        return f"call {self.number} ({self.request.method} {path}), {self.fault}"


@dataclass
class Explored:
    """What came of it."""

    calls: Sequence[Request] = ()
    points: list[Point] = field(default_factory=list)
    missed: int = 0
    """Points that a run did not come to, because it needed fewer calls."""
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """What a disturbed run took on average."""

    def __str__(self) -> str:
        writes = sum(request.method != "GET" for request in self.calls)
        return (
            f"{len(self.calls)} calls ({writes} writes), {len(self.points)} runs with a fault "
            f"({self.missed} of them ended before it), {1000 * self.seconds:.0f} ms each"
        )


@dataclass(frozen=True)
class Ground:
    """What stays from one run to the next: a client, the audit, the parts nothing happens to."""

    client: Client
    config: ClusterConfig
    scenario: Scenario
    audit: Audit
    beside: Sequence[Incarnation]

    @classmethod
    @contextlib.asynccontextmanager
    async def laid(cls, server: ApiServer, scenario: Scenario) -> AsyncIterator[Ground]:
        """Lay it on an empty server."""
        config = ClusterConfig.load(server.kubeconfig)
        async with Client(config) as client:
            await ensure_crds(client)
            await empty(client)
            beside = [Incarnation(part, config, nothing) for part in scenario.beside]
            try:
                for other in beside:
                    await eventually(lambda one=other: one.ready.is_set() or one.task.done())
                async with Audit.running(client) as audit:
                    yield cls(client, config, scenario, audit, beside)
            finally:
                for other in beside:
                    await other.kill()

    @contextlib.asynccontextmanager
    async def stage(self, plan: Plan) -> AsyncIterator[Stage]:
        """Set the stage for one run."""
        await empty(self.client, nodes=not self.scenario.keeps_nodes)
        await eventually(lambda: not len(self.audit.pods), what="the audit has seen the pods go")
        self.audit.begin()
        begin = self.scenario.begin
        stage = Stage(self.client, self.config, self.audit, begin, plan, self.beside)
        try:
            yield stage
        finally:
            await stage.close()

    async def smooth(self) -> tuple[object, list[Request]]:
        """Play undisturbed; return how it ends, and the calls."""
        async with self.stage(nothing) as stage:
            await self.scenario.play(stage)
            await stage.quiet(LONG_QUIET)
            expected = await self.scenario.outcome(stage)
            stage.audit.check()
            return expected, list(stage.lives[0].requests)


async def explore(
    server: ApiServer,
    scenario: Scenario,
    *,
    most: int | None = None,
) -> Explored:
    """Play *scenario* undisturbed, then once for each point, or for *most* of them."""
    found = Explored()
    async with Ground.laid(server, scenario) as ground:
        expected, calls = await ground.smooth()
        found.calls = _but_for_the_last_renewals(calls)
        began = time.monotonic()
        for point in _choose(list(_points(found.calls)), most):
            found.points.append(point)
            try:
                async with ground.stage(Only(point.number, point.fault)) as stage:
                    await scenario.play(stage)
                    await _ends_as(stage, scenario, expected)
                    found.missed += len(stage.lives[0].requests) < point.number
            except AssertionError as error:
                found.failures.append(f"{point}: {told(error)}")
                if len(found.failures) == ENOUGH:
                    break
        found.seconds = (time.monotonic() - began) / max(1, len(found.points))
    return found


@dataclass(frozen=True)
class Arena:
    """A server, how many points of a scenario are tried on it, and whom to tell what was."""

    server: ApiServer
    most: int | None
    record: Callable[[str, object], None]

    @property
    def seeds(self) -> int:
        """How many kinds of weather a scenario is played in."""
        return 40 if self.most is None else max(1, self.most // 6)

    async def endures(self, scenario: Scenario) -> None:
        """Fail unless *scenario* ends the same whatever happens at any one call."""
        explored = await explore(self.server, scenario, most=self.most)
        self.record("crashes", str(explored))
        assert not explored.failures, "\n".join(explored.failures)

    async def weathers(self, scenario: Scenario, seeds: Iterable[int]) -> None:
        """Fail unless *scenario* ends the same in every weather."""
        met = 0
        async with Ground.laid(self.server, scenario) as ground:
            expected, _ = await ground.smooth()
            for seed in seeds:
                weather = Weather(seed)
                try:
                    async with ground.stage(weather) as stage:
                        await scenario.play(stage)
                        await _ends_as(stage, scenario, expected)
                except AssertionError as error:
                    faults = "\n  ".join(weather.met)
                    raise AssertionError(f"seed {seed}: {told(error)}\n  {faults}") from None
                met += len(weather.met)
        self.record("crashes", f"{met} faults of all kinds, many in each run")


def _but_for_the_last_renewals(calls: list[Request]) -> list[Request]:
    """Leave out what a leader does for as long as it lives, when all else is done."""
    last = max(number for number, request in enumerate(calls, 1) if not _renews(request))
    return calls[:last]


def _points(calls: Iterable[Request]) -> Iterable[Point]:
    """Return what may go wrong: a read changes nothing, so to end before it or after is one."""
    for number, request in enumerate(calls, 1):
        yield Point(number, request, Kill.AFTER)
        if request.method != "GET":
            yield Point(number, request, Kill.BEFORE)
            yield Point(number, request, Break.UNSEEN)
            yield Point(number, request, Break.LATE)


def _choose(points: list[Point], most: int | None) -> list[Point]:
    """Return *most* of the points, the same in every run."""
    if most is None or most >= len(points):
        return points
    dice = random.Random(len(points))  # noqa: S311  a seeded choice of cases
    return sorted(dice.sample(points, most), key=lambda point: point.number)


async def _ends_as(stage: Stage, scenario: Scenario, expected: object) -> None:
    seen: object = None

    async def same() -> bool:
        nonlocal seen
        seen = await scenario.outcome(stage)
        return seen == expected

    try:
        await stage.until(same, "the same end")
        await stage.quiet()
        # What came late may have changed something; that is put right, or the run fails.
        await stage.until(same, "the same end after what came late")
    except AssertionError as error:
        stage.audit.check()
        raise AssertionError(f"{told(error)}\n  expected {expected}\n  seen     {seen}") from None
    stage.audit.check()
