"""InferenceGraphs at work: one request in, calls of services, one answer out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from lockstep.api.wire import Json
from lockstep.serve.core import graph
from lockstep.serve.core.choice import Turns
from lockstep.serve.router.calls import Answer, Asked, Call
from lockstep.serve.router.lane import Lane
from lockstep.serve.router.upstream import Pool

_NOT_PASSED: Final = (b"host", b"content-length")


class Graphs:
    """Goes through the graphs of all routes."""

    def __init__(self, lane: Callable[[str], Lane | None]) -> None:
        self._lane = lane
        self._turns: dict[tuple[str, str], Turns] = {}
        self._pools: dict[tuple[str, int], Pool] = {}

    async def run(self, lane: Lane, asked: Asked) -> Answer:
        """Return the answer of the graph of *lane* to a request."""
        nodes = lane.spec.graph
        run = _Run(self, lane, nodes, asked)
        try:
            async with asyncio.timeout(lane.spec.timeout):
                return await run.node(graph.ROOT, asked.body)
        except TimeoutError:
            return _error(504, f"the graph gave no answer within {lane.spec.timeout} s")

    def pick(self, lane: Lane, name: str, steps: list[Json]) -> Json:
        """Return the step of a Splitter whose turn it is."""
        turns = self._turns.setdefault((lane.key, name), Turns())
        weights = {str(number): int(step.get("weight") or 0) for number, step in enumerate(steps)}
        return steps[int(turns.take(weights) or 0)]

    async def call(self, lane: Lane, step: Json, asked: Asked) -> Answer:
        """Return what the service of a step answers."""
        if service := step.get("serviceName"):
            target = self._lane(f"{lane.key.partition('/')[0]}/{service}")
            if target is None:
                return _error(503, f"the graph's service {service} is not there")
            path = target.spec.predict or asked.target.decode("latin-1")
            request = Asked(b"POST", path.encode(), asked.headers, asked.body)
            return await Call(request).through(target)
        url = urlsplit(str(step["serviceUrl"]))
        own = self._own(url.hostname or "")
        path = url.path or "/"
        if own is not None:
            request = Asked(b"POST", path.encode(), asked.headers, asked.body)
            return await Call(request).through(own)
        if url.scheme != "http" or not url.hostname:
            return _error(502, f"serviceUrl {step['serviceUrl']}: http alone is called")
        pool = self._pools.setdefault(
            (url.hostname, url.port or 80), Pool(url.hostname, url.port or 80)
        )
        headers = [(b"Host", url.netloc.encode()), *asked.headers]
        return await Call(Asked(b"POST", path.encode(), headers, asked.body)).at(
            pool, lane.spec.timeout
        )

    def _own(self, host: str) -> Lane | None:
        """Return the lane of a service that is called by its name inside the cluster."""
        name, _, rest = host.partition(".")
        namespace, _, domain = rest.partition(".")
        inside = domain in ("", "svc", "svc.cluster.local") and bool(namespace)
        return self._lane(f"{namespace}/{name}") if inside else None


class _Run:
    def __init__(self, graphs: Graphs, lane: Lane, nodes: dict[str, Json], asked: Asked) -> None:
        self._graphs, self._lane, self._nodes = graphs, lane, nodes
        kept = [pair for pair in asked.headers if pair[0].lower() not in _NOT_PASSED]
        self._asked = Asked(asked.method, asked.target, kept)

    async def node(self, name: str, body: bytes) -> Answer:
        node = self._nodes[name]
        steps: list[Json] = node["steps"]
        match node["routerType"]:
            case "Splitter":
                return await self._step(self._graphs.pick(self._lane, name, steps), body)
            case "Switch":
                step = graph.chosen(steps, body)
                if step is None:
                    return _error(404, f"no condition of the switch {name} fits the request")
                return await self._step(step, body)
            case "Ensemble":
                return await self._ensemble(steps, body)
            case _:
                return await self._sequence(steps, body)

    async def _sequence(self, steps: list[Json], body: bytes) -> Answer:
        found: Answer | None = None
        for step in steps:
            if found is not None and not graph.goes_on(step, found.body):
                return found
            sent = graph.given(step, body, found.body if found else None)
            found = await self._step(step, sent)
            if found.status >= 300 and step.get("dependency") == "Hard":
                return found
        return found or _error(500, "the sequence is empty")

    async def _ensemble(self, steps: list[Json], body: bytes) -> Answer:
        answers = await asyncio.gather(*(self._step(step, body) for step in steps))
        for step, one in zip(steps, answers, strict=True):
            if one.status >= 300 and step.get("dependency") == "Hard":
                return one
        kind = [(b"Content-Type", b"application/json")]
        return Answer(200, kind, graph.merged(steps, [one.body for one in answers]))

    async def _step(self, step: Json, body: bytes) -> Answer:
        if name := step.get("nodeName"):
            return await self.node(name, body)
        asked = Asked(self._asked.method, self._asked.target, self._asked.headers, body)
        return await self._graphs.call(self._lane, step, asked)


def _error(status: int, message: str) -> Answer:
    return Answer(status, [], json.dumps({"error": message}).encode())
