"""Which way a request goes: straight to a replica, into a batch, through a graph, past a log."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any, Final

from lockstep.api.serving import RouteSpec
from lockstep.serve.core import prefix
from lockstep.serve.core.choice import NO_HINTS, Hints, revision_of
from lockstep.serve.router.batches import Batches
from lockstep.serve.router.buffered_request import BufferedRequest, head_of
from lockstep.serve.router.calls import Answer, Asked, Call, Headers, beside
from lockstep.serve.router.exchange import WHOLE, Client, Exchange, Tap
from lockstep.serve.router.graphs import Graphs
from lockstep.serve.router.lane import Lane, Replica
from lockstep.serve.router.llm_figures import LlmFigures, LlmTap
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
        self.figures = LlmFigures()

    def sort(
        self,
        client: Client,
        lane: Lane,
        asked: Asked,
        length: int | None,
    ) -> Exchange | BufferedRequest:
        """Return what carries *asked*, a request without its body yet, on *lane*."""
        spec = lane.spec
        if spec.graph:
            return BufferedRequest(client, asked, lambda whole: self._graphs.run(lane, whole))
        if spec.batcher.size and asked.target.partition(b"?")[0].endswith(b":predict"):
            return BufferedRequest(client, asked, lambda whole: self._batches.run(lane, whole))
        hints = hints_of(lane, asked.headers) if spec.matches or spec.session else NO_HINTS
        tap = self.tap(lane, asked)
        if spec.prefill and asked.target.partition(b"?")[0].endswith(b"completions"):
            return Prefilled(client, self, lane, asked, length, tap=tap)
        kind = Prompted if spec.choice == "prefix" else Exchange
        return kind(client, lane, asked.method, _head(asked), length, hints=hints, tap=tap)

    def tap(self, lane: Lane, asked: Asked) -> Tap | None:
        """Return what sees a request pass: logs, copies, figures of language models."""
        spec, several = lane.spec, list[Tap]()
        if spec.logger.url or spec.mirror.percent:
            several.append(_Tap(self, lane, asked))
        if spec.models and asked.method == b"POST":
            tenant = asked.tenant or lane.key.partition("/")[0]
            several.append(LlmTap(self.figures.meters(), list(spec.models), tenant))
        return several[0] if len(several) == 1 else (_Taps(several) if several else None)

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

    def within(self, namespaces: frozenset[str]) -> Sorting:
        """Return the same with the services of *namespaces* alone; with none, all of them."""
        if not namespaces:
            return self
        found = copy.copy(self)
        found._lanes = {
            key: lane for key, lane in self._lanes.items() if key.partition("/")[0] in namespaces
        }
        return found

    def beside(self, lane: Lane, name: str) -> Lane | None:
        """Return the lane of that name in the namespace of *lane*."""
        return self._lanes.get(f"{lane.key.partition('/')[0]}/{name}")

    def _models(self) -> bytes:
        data = [
            {"id": name, "object": "model", "owned_by": lane.key}
            for lane in self._lanes.values()
            for name in lane.spec.models
        ]
        body = json.dumps({"object": "list", "data": data}).encode()
        return head_of(Answer(200, [], body)) + body

    def copied(self, lane: Lane, asked: Asked) -> None:
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


class Prefilled(Exchange):
    """A request whose prompt one replica reads before another answers it.

    The first gets the request with one token to make, and says where what it has read lies
    (``kv_transfer_params``, in vLLM's words); the second gets that with the request.
    """

    waits = True
    __slots__ = ("_asked", "_reading", "_sorting")

    def __init__(
        self,
        client: Client,
        sorting: Sorting,
        lane: Lane,
        asked: Asked,
        length: int | None,
        *,
        tap: Tap | None = None,
    ) -> None:
        super().__init__(client, lane, asked.method, _head(asked), length, tap=tap)
        self._sorting, self._asked = sorting, asked
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Have the prompt read; then ask for a replica."""
        body = _json(self.body) if self.complete else None
        self.hand_over(self._sorting, self.lane, body)

    def hand_over(self, sorting: Sorting, lane: Lane, body: Any) -> None:
        """Begin to have the prompt read for *lane*."""
        self.lane = lane
        if not isinstance(body, dict):
            self.refuse(400, f"a JSON object of up to {WHOLE} bytes is needed")
            return
        self._reading = asyncio.ensure_future(self._read(sorting, lane, body))

    async def _read(self, sorting: Sorting, lane: Lane, body: dict[str, Any]) -> None:
        hints = _with_prompt(NO_HINTS, body)
        first = sorting.beside(lane, lane.spec.prefill)
        if first is not None:
            wish = {"do_remote_decode": True, "do_remote_prefill": False}
            one = {**body, "max_tokens": 1, "stream": False, "kv_transfer_params": wish}
            one.pop("stream_options", None)
            if "max_completion_tokens" in one:
                one["max_completion_tokens"] = 1
            asked = Asked(
                self._asked.method,
                self._asked.target,
                self._asked.headers,
                json.dumps(one).encode(),
            )
            found = await Call(asked, hints).through(first)
            answer = _json([found.body]) if found.status == 200 else None
            if not isinstance(answer, dict):
                if found.status in (400, 404, 413, 422, 429):
                    self.refuse(found.status, f"prefill: {found.body[:500].decode('latin-1')}")
                    return
                answer = {}
            # Where the prompt could not be read beforehand, the second replica reads it itself.
            if answer.get("kv_transfer_params"):
                body = {**body, "kv_transfer_params": answer["kv_transfer_params"]}
                self.body = [json.dumps(body).encode()]
        if not self.over:
            self.hints = hints
            super().start()

    def abandon(self) -> None:
        """End it because its client is gone."""
        if self._reading is not None:
            self._reading.cancel()
        super().abandon()


class ByModel(Prefilled):
    """A request whose body says which service it is for."""

    openai = True
    __slots__ = ()

    def __init__(self, client: Client, sorting: Sorting, asked: Asked, length: int | None) -> None:
        nowhere = Lane(OPENAI.decode(), RouteSpec(), lambda lane, urgent: None)
        super().__init__(client, sorting, nowhere, asked, length)

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
        self._tap = self._sorting.tap(lane, self._asked)
        if lane.spec.prefill:
            self.hand_over(self._sorting, lane, body)
            return
        self.lane = lane
        hints = hints_of(lane, self._asked.headers)
        prompted = lane.spec.choice == "prefix" and not hints.session
        self.hints = _with_prompt(hints, body) if prompted else hints
        lane.admit(self)


def _json(parts: list[bytes]) -> Any:
    try:
        return json.loads(b"".join(parts) or b"null")
    except ValueError:
        return None


def _with_prompt(hints: Hints, body: Any) -> Hints:
    return Hints(hints.revision, "", prefix.blocks(prefix.prompt(body)))


class _Taps:
    """Several that see the same pass."""

    def __init__(self, several: list[Tap]) -> None:
        self._several = several

    def request(self, head: bytes, body: bytes, *, whole: bool) -> None:
        """Tell all of a request."""
        for one in self._several:
            one.request(head, body, whole=whole)

    def answer(self, status: int) -> None:
        """Tell all of the status."""
        for one in self._several:
            one.answer(status)

    def piece(self, data: bytes) -> None:
        """Tell all of a piece of the answer."""
        for one in self._several:
            one.piece(data)

    def end(self) -> None:
        """Tell all that the answer is over."""
        for one in self._several:
            one.end()


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
            self._sorting.copied(self._lane, asked)
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
