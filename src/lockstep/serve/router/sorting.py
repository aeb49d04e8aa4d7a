"""Which way a request goes: straight to a replica, into a batch, through a graph, past a log."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from lockstep.api.serving import RouteSpec
from lockstep.serve.core import prefix
from lockstep.serve.core.choice import NO_HINTS, Hints, revision_of
from lockstep.serve.router.batches import Batches
from lockstep.serve.router.calls import Answer, Asked, Call, Headers, beside
from lockstep.serve.router.exchange import WHOLE, Client, Exchange
from lockstep.serve.router.graphs import Graphs
from lockstep.serve.router.handled import Handled, head_of
from lockstep.serve.router.lane import Lane, Replica
from lockstep.serve.router.payloads import MOST_BYTES, Payloads, number

OPENAI: Final = b"/openai/"
"""What paths begin with whose service is the one that has the request's model."""


class Sorting:
    """Makes of each request what carries it."""

    def __init__(self, lanes: dict[str, Lane]) -> None:
        self._lanes = lanes
        self.payloads = Payloads()
        self._graphs = Graphs(lanes.get)
        self._batches = Batches()
        self._copies: set[asyncio.Task[None]] = set()

    def sort(
        self,
        client: Client,
        lane: Lane,
        asked: Asked,
        length: int | None,
    ) -> Exchange | Handled:
        """Return what carries *asked*, a request without its body yet, on *lane*."""
        spec = lane.spec
        if spec.graph:
            return Handled(client, asked, lambda whole: self._graphs.run(lane, whole))
        if spec.batcher.size and asked.target.partition(b"?")[0].endswith(b":predict"):
            return Handled(client, asked, lambda whole: self._batches.run(lane, whole))
        hints = hints_of(lane, asked.headers) if spec.matches or spec.session else NO_HINTS
        tap = _Tap(self, lane, asked) if spec.logger.url or spec.mirror.percent else None
        kind = Prompted if spec.choice == "prefix" else Exchange
        return kind(client, lane, asked.method, _head(asked), length, hints=hints, tap=tap)

    def by_model(self, client: Client, asked: Asked, length: int | None) -> Exchange | bytes:
        """Return what carries a request of OpenAI's protocol to the service with its model.

        The list of models is answered at once.
        """
        if asked.target.partition(b"?")[0] == b"/v1/models" and asked.method == b"GET":
            return self._models()
        return ByModel(client, self, asked, length)

    def with_model(self, name: str) -> Lane | str:
        """Return the lane of the service that has the model *name*, or why there is none."""
        found = [
            lane
            for key, lane in self._lanes.items()
            if name in lane.spec.models or (key == name and lane.spec.models)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            keys = ", ".join(sorted(lane.key for lane in found))
            return f"several services have the model {name!r}; ask for one of: {keys}"
        there = sorted({one for lane in self._lanes.values() for one in lane.spec.models})
        return f"there is no model {name!r}; there are: {', '.join(there) or 'none'}"

    def _models(self) -> bytes:
        data = [
            {"id": name, "object": "model", "owned_by": lane.key}
            for lane in self._lanes.values()
            for name in lane.spec.models
        ]
        body = json.dumps({"object": "list", "data": data}).encode()
        return head_of(Answer(200, [], body)) + body

    def copy(self, lane: Lane, asked: Asked) -> None:
        """Send a copy of a request to the revision that mirrors, where it is its turn."""
        replica = lane.mirror()
        if replica is not None:
            beside(asyncio.ensure_future(_copied(lane, replica, asked)), self._copies)

    def close(self) -> None:
        """End what is under way beside the requests."""
        self.payloads.close()
        for one in self._copies:
            one.cancel()


def hints_of(lane: Lane, headers: Headers) -> Hints:
    """Return what the headers of a request say of its replica."""
    wanted = lane.spec.session.lower().encode()
    session = next((v for k, v in headers if wanted and k.lower() == wanted), b"")
    return Hints(revision_of(lane.spec.matches, headers), session.decode("latin-1"))


async def _copied(lane: Lane, replica: Replica, asked: Asked) -> None:
    await Call(asked).to(lane, replica)


def _head(asked: Asked) -> bytes:
    """Return the head for the replica, without what says how long the body is."""
    lines = [b"%b %b HTTP/1.1\r\n" % (asked.method, asked.target)]
    lines += [b"%b: %b\r\n" % pair for pair in asked.headers]
    return b"".join(lines)


class Prompted(Exchange):
    """A request whose prompt says which replica is best."""

    waits = True
    __slots__ = ()

    def start(self) -> None:
        """Read the prompt, where the body is there and not too large; then ask for a replica."""
        if self.complete and self.held_bytes <= WHOLE and not self.hints.session:
            self.hints = _with_prompt(self.hints, _json(self.body))
        super().start()


class ByModel(Exchange):
    """A request whose body says which service it is for."""

    waits = True
    __slots__ = ("_headers", "_sorting")

    def __init__(self, client: Client, sorting: Sorting, asked: Asked, length: int | None) -> None:
        nowhere = Lane(OPENAI.decode(), RouteSpec(), lambda lane, urgent: None)
        super().__init__(client, nowhere, asked.method, _head(asked), length)
        self._sorting, self._headers = sorting, asked.headers

    def start(self) -> None:
        """Find the service by the body's ``model``."""
        if not self.complete:
            self.refuse(413, f"the model is looked for in bodies of up to {WHOLE} bytes")
            return
        body = _json(self.body)
        name = body.get("model") if isinstance(body, dict) else None
        if not isinstance(name, str):
            self.refuse(400, 'the body must be JSON with a "model"')
            return
        lane = self._sorting.with_model(name)
        if isinstance(lane, str):
            self.refuse(404, lane)
            return
        self.lane = lane
        hints = hints_of(lane, self._headers)
        prompted = lane.spec.choice == "prefix" and not hints.session
        self.hints = _with_prompt(hints, body) if prompted else hints
        super().start()


def _json(parts: list[bytes]) -> Any:
    try:
        return json.loads(b"".join(parts) or b"null")
    except ValueError:
        return None


def _with_prompt(hints: Hints, body: Any) -> Hints:
    return Hints(hints.revision, "", prefix.blocks(prefix.prompt(body)))


class _Tap:
    """Sees one request and its answer pass."""

    def __init__(self, sorting: Sorting, lane: Lane, asked: Asked) -> None:
        self._sorting, self._lane, self._asked = sorting, lane, asked
        self._number = number()
        self._answer: list[bytes] = []
        self._size = 0
        self._seen = False

    def request(self, head: bytes, body: bytes, *, whole: bool) -> None:
        """Log and copy a request; one that is not there whole is neither."""
        if self._seen or not whole:
            return
        self._seen = True
        asked = Asked(self._asked.method, self._asked.target, self._asked.headers, body)
        if self._lane.spec.mirror.percent:
            self._sorting.copy(self._lane, asked)
        if self._lane.spec.logger.url:
            self._log("request", body)

    def answer(self, status: int) -> None:
        """Begin an answer anew."""
        self._answer, self._size = [], 0

    def piece(self, data: bytes) -> None:
        """Keep a piece of the answer for the log."""
        self._size += len(data)
        if self._lane.spec.logger.url and self._size <= MOST_BYTES:
            self._answer.append(data)

    def end(self) -> None:
        """Log the answer."""
        if self._lane.spec.logger.url and self._size <= MOST_BYTES:
            self._log("response", b"".join(self._answer))

    def _log(self, kind: str, body: bytes) -> None:
        headers = self._asked.headers
        self._sorting.payloads.log(self._lane, kind, self._number, body, headers)
