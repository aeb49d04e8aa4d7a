"""A transport that goes wrong on command, between the real client and a real server.

A plan says what happens to the n-th request; what it does not name passes. Requests that write go
one after the other, so that "up to request n" is one state of the server and not many.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from lockstep.kube.config import ClusterConfig
from lockstep.kube.connection import default_transport
from lockstep.kube.credentials import Credential
from lockstep.kube.errors import Unreachable
from lockstep.kube.transport import Request, Response, Stream, Transport

CREATED = 201


class Break(Enum):
    """The connection breaks."""

    UNSENT = "before anything was sent"
    UNANSWERED = "after the server acted, before it answered"
    LATE = "before the server gets the request, which it does later all the same"
    ODD = "after the server acted, with an error that nobody expects"
    UNSEEN = "after the server acted, before it answered, and watches tell of it late"


class Kill(Enum):
    """The process ends: this request and all that follow never return."""

    BEFORE = "before it was sent"
    AFTER = "after the server acted"


@dataclass(frozen=True, slots=True)
class Delay:
    """The request is on its way for that long before the server gets it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Twice:
    """Something on the way sends the request a second time and passes on the second answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server answers without having acted."""

    status: int
    reason: str = ""
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """A stream breaks after so many bytes."""

    after: int


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream falls silent after so many bytes."""

    after: int


@dataclass(frozen=True, slots=True)
class Close:
    """A stream ends in order after so many bytes, be it within an event."""

    after: int


Fault = Break | Kill | Delay | Twice | Answer | Cut | Stall | Close
Plan = Callable[[int, Request], Fault | None]
"""What happens to a request, by its number (from 1) and what it is."""


@dataclass
class Faults:
    """What goes wrong on every transport that is made with it, and what was asked for so far."""

    plan: Plan = field(default_factory=lambda: nothing)
    on_kill: Callable[[], None] = lambda: None
    on_change: Callable[[], None] = lambda: None
    """Called when ``requests`` or ``busy`` may have changed."""
    requests: list[Request] = field(default_factory=list)
    under_way: int = 0
    dead: bool = False
    late: float = 0.3
    """How many seconds streams bring nothing after ``Break.UNSEEN``, and ``LATE`` requests take."""
    made_late: list[Request] = field(default_factory=list)
    """Creations that the server took after their sender had given them up."""
    _underway: list[asyncio.Task[None]] = field(default_factory=list)
    _seeing: asyncio.Event = field(default_factory=asyncio.Event)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def transport(self, config: ClusterConfig, credential: Credential) -> Transport:
        """Return the client's usual transport with these faults before it: a TransportFactory."""
        return FaultyTransport(default_transport(config, credential), self)

    @contextlib.asynccontextmanager
    async def admit(self, request: Request) -> AsyncIterator[Fault | None]:
        """Count *request* when its turn has come, and say what happens to it."""
        async with contextlib.nullcontext() if request.method == "GET" else self._writing:
            if self.dead:
                await asyncio.Event().wait()
            self.requests.append(request)
            self.under_way += 1
            self.on_change()
            try:
                yield self.plan(len(self.requests), request)
            finally:
                self.under_way -= 1
                self.on_change()

    def __post_init__(self) -> None:
        self._seeing.set()

    def deliver_late(self, request: Request, inner: Transport) -> None:
        """Let the server have a request after the sender has given it up."""

        async def deliver() -> None:
            await asyncio.sleep(self.late)
            answer = await inner.send(request)
            if answer.status == CREATED and request.method == "POST":
                self.made_late.append(request)

        task = asyncio.create_task(deliver())
        task.add_done_callback(lambda _: self.on_change())
        self._underway.append(task)

    @property
    def busy(self) -> bool:
        """Return whether something is on its way: a request, be it a late one, or blind streams."""
        late = not self._seeing.is_set() or not all(task.done() for task in self._underway)
        return not self.dead and (bool(self.under_way) or late)

    def look_away(self) -> None:
        """Let streams bring nothing for a while."""

        def see() -> None:
            self._seeing.set()
            self.on_change()

        self._seeing.clear()
        asyncio.get_running_loop().call_later(self.late, see)

    async def seeing(self) -> None:
        """Wait until streams bring something again."""
        await self._seeing.wait()

    async def kill(self) -> None:
        """End the process as far as its requests go."""
        self.dead = True
        self.on_kill()
        await asyncio.Event().wait()


class FaultyTransport:
    """Carries requests, or fails to."""

    def __init__(self, inner: Transport, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def send(self, request: Request) -> Response:
        """Send *request*, unless the plan has it otherwise."""
        async with self._faults.admit(request) as fault:
            answer = await self._before(fault)
            if answer is not None:
                return answer
            if fault is Break.LATE:
                self._faults.deliver_late(request, self._inner)
                raise Unreachable("Connection", "made to break on the way")
            if fault is Break.UNSEEN:
                self._faults.look_away()
            response = await self._inner.send(request)
            if isinstance(fault, Twice):
                response = await self._inner.send(request)
            await self._after(fault)
            return response

    async def _before(self, fault: Fault | None) -> Response | None:
        """Do what happens before the request is sent; return an answer that replaces it."""
        if fault is Kill.BEFORE:
            await self._faults.kill()
        if fault is Break.UNSENT:
            raise Unreachable("Connection", "made to break before sending", acted=False)
        if isinstance(fault, Delay):
            await asyncio.sleep(fault.seconds)
        return _response(fault) if isinstance(fault, Answer) else None

    async def _after(self, fault: Fault | None) -> None:
        """Do what happens once the server has acted."""
        if fault is Kill.AFTER:
            await self._faults.kill()
        if fault in (Break.UNANSWERED, Break.UNSEEN):
            raise Unreachable("Connection", "made to break before the answer")
        if fault is Break.ODD:
            raise RuntimeError("made to fail as nothing should")

    async def open(self, request: Request) -> Stream:
        """Open a stream, unless the plan has it otherwise."""
        async with self._faults.admit(request) as fault:
            answer = await self._before(fault)
            if answer is not None:
                return _Read(answer)
            stream = await self._inner.open(request)
            try:
                await self._after(fault)
            except Unreachable:
                await stream.close()
                raise
            return FaultyStream(stream, fault, self._faults)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


class FaultyStream:
    """A stream that ends, breaks or falls silent at a given byte."""

    def __init__(self, inner: Stream, fault: Fault | None, faults: Faults) -> None:
        self._inner = inner
        self._fault = fault
        self._faults = faults
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body up to where it goes wrong."""
        fault = self._fault
        left = fault.after if isinstance(fault, Cut | Stall | Close) else None
        if left == 0:
            await self._go_wrong()
            return
        async for chunk in self._inner.chunks():
            await self._faults.seeing()
            if left is not None and len(chunk) >= left:
                yield chunk[:left]
                await self._go_wrong()
                return
            if left is not None:
                left -= len(chunk)
            yield chunk

    async def _go_wrong(self) -> None:
        if isinstance(self._fault, Stall):
            await asyncio.Event().wait()
        if isinstance(self._fault, Cut):
            raise Unreachable("Connection", "made to break")

    async def close(self) -> None:
        """Let go of the connection."""
        await self._inner.close()


class _Read:
    """A whole answer as a stream."""

    def __init__(self, response: Response) -> None:
        self._body = response.body
        self.status = response.status
        self.headers = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        """There is nothing to let go of."""


def _response(answer: Answer) -> Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": answer.status,
        "reason": answer.reason,
        "message": f"made to fail with {answer.status}",
    }
    headers = {"Retry-After": answer.retry_after} if answer.retry_after else {}
    return Response(answer.status, headers, json.dumps(body).encode())


def nothing(_number: int, _request: Request) -> Fault | None:
    """The plan by which nothing goes wrong."""
    return None


@dataclass(frozen=True, slots=True)
class Only:
    """The plan by which request *number* alone goes wrong."""

    number: int
    fault: Fault

    def __call__(self, number: int, _request: Request) -> Fault | None:
        """Return what happens to a request."""
        return self.fault if number == self.number else None


class Weather:
    """A plan by which any request may go wrong in any way, drawn by chance from a seed."""

    WRITES: tuple[Fault, ...] = (
        Break.UNSENT,
        Break.UNANSWERED,
        Break.UNSEEN,
        Break.LATE,
        Kill.BEFORE,
        Kill.AFTER,
        Delay(0.05),
        Twice(),
        Answer(409, "Conflict"),
        Answer(429, "TooManyRequests"),
        Answer(500, "InternalError"),
        Answer(503, "ServiceUnavailable"),
    )
    READS: tuple[Fault, ...] = (
        Break.UNSENT,
        Break.UNANSWERED,
        Kill.AFTER,
        Delay(0.05),
        Answer(410, "Expired"),
        Answer(429, "TooManyRequests"),
        Answer(500, "InternalError"),
        Cut(700),
        Close(5_000),
    )

    def __init__(self, seed: int, *, chance: float = 0.2, most: int = 25) -> None:
        self.met: list[str] = []
        """What went wrong, in order."""
        self._dice = random.Random(seed)  # noqa: S311  a seeded choice of cases
        self._chance = chance
        self._most = most

    def __call__(self, _number: int, request: Request) -> Fault | None:
        """Return what happens to a request; after enough of it the sky clears."""
        if len(self.met) >= self._most or self._dice.random() > self._chance:
            return None
        fault = self._dice.choice(self.READS if request.method == "GET" else self.WRITES)
        self.met.append(f"{request.method} {request.target.partition('?')[0]}: {fault}")
        return fault
