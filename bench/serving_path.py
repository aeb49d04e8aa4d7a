"""Releases, overload, zero and prompts: the router's data path, and what it chooses."""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.figure import Figure
from lockstep.api.core import ControllerRevision, Pod, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import Backend, HoldQueue, Route, Router, RouterSpec, RouteSpec
from lockstep.api.wire import convert
from lockstep.compat.kserve.objects import InferenceService, Spec
from lockstep.kube.cache import Change
from lockstep.runtime.actions import Create
from lockstep.serve.core.choice import by_prefix, least_loaded
from lockstep.serve.core.decide import decide, translate
from lockstep.serve.core.prefix import Prefixes
from lockstep.serve.core.service_state import Seen
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table

SLOW = True
RATE, PHASE = 500, 400
"""Requests a second, and requests with one split."""
SLOTS, SECONDS, WORK = 4, 5, 0.02
RACES, SERVICES = 1000, 5000
REPLICAS, GROUPS, TURNS, BLOCK_SECONDS, CACHE = 8, 120, 6, 0.004, 1500
REQUEST = b"GET /serving/n/s/x HTTP/1.1\r\nHost: h\r\n\r\n"


def run() -> list[Figure]:
    lost, off = asyncio.run(_canary())
    served, refused_after = asyncio.run(_overload())
    raced = asyncio.run(_races())
    ours, knowing, first, blind = _prompts()
    return [
        Figure("canary 0 to 100 and back at 500 requests/s: lost", lost, "req", "lower", 0),
        Figure("farthest that a split was off", off, "points", "lower", 1.0),
        Figure("twice the capacity: served of it", served, "%", "higher", 95.0),
        Figure("the rest refused in, P99", refused_after, "ms", "lower", 100.0),
        Figure(f"last request against zero, {RACES} races: lost", raced, "req", "lower", 0),
        Figure(
            f"deciding for {SERVICES} services until all are ready", _many(), "CPU s", "lower", 120
        ),
        Figure("prompts held, 8 simulated replicas", ours, "%", "higher", knowing - 3).beside(
            "a router that knows all", knowing
        ),
        Figure("time to the first token there, P50", first, "ms", "lower").beside(
            "by load alone", blind
        ),
    ]


# --- the data path ---


@dataclass
class Path:
    """A router whose routes and replicas are put in by hand."""

    table: Table = field(default_factory=lambda: Table("", lambda lane, urgent: None))
    port: int = 0

    def route(self, backends: dict[str, tuple[int, int]], **spec: Any) -> None:
        listed = [Backend(revision=r, port=p, weight=w) for r, (p, w) in backends.items()]
        meta = ObjectMeta(name="s", namespace="n", uid="u")
        self.table.on_route(
            Change(None, Route(metadata=meta, spec=RouteSpec(backends=listed, **spec)))
        )

    def pod(self, revision: str, *, there: bool = True) -> None:
        meta = ObjectMeta(
            name=revision, namespace="n", uid=revision, labels={REVISION_LABEL: revision}
        )
        ready = Condition(type="Ready", status="True")
        status = PodStatus(phase="Running", pod_ip="127.0.0.1", conditions=[ready])
        one = Pod(metadata=meta, status=status)
        self.table.on_pod(Change(None, one) if there else Change(one, None))


@asynccontextmanager
async def _path(
    answers: dict[str, Callable[[], Any]],
) -> AsyncIterator[tuple[Path, dict[str, int]]]:
    """Run a router and one server for each of *answers*, which say when a request is answered."""
    path, clients = Path(), set[ClientSide]()
    sorting = Sorting(path.table.lanes)
    loop = asyncio.get_running_loop()
    servers, ports = [], {}
    for name, pause in answers.items():

        async def serve(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            name: str = name,
            pause: Callable[[], Any] = pause,
        ) -> None:
            try:
                while await reader.readuntil(b"\r\n\r\n"):
                    await pause()
                    body = name.encode()
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                    )
            except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        ports[name] = server.sockets[0].getsockname()[1]
    front = await loop.create_server(
        lambda: ClientSide(path.table.find, path.table.unknown, clients, sorting), "127.0.0.1", 0
    )
    path.port = front.sockets[0].getsockname()[1]
    try:
        yield path, ports
    finally:
        front.close()
        for one in servers:
            one.close()


async def _nothing() -> None:
    return None


async def _ask(port: int) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    return int(head.split(b" ")[1]), body


async def _paced(port: int, count: int, rate: float) -> list[tuple[int, bytes, float]]:
    """Return status, body and seconds of *count* requests, begun at *rate* a second."""
    loop = asyncio.get_running_loop()
    start = loop.time()

    async def one() -> tuple[int, bytes, float]:
        began = loop.time()
        try:
            status, body = await _ask(port)
        except (OSError, asyncio.IncompleteReadError):
            status, body = 0, b""
        return status, body, loop.time() - began

    tasks = []
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
        tasks.append(asyncio.ensure_future(one()))
    return await asyncio.gather(*tasks)


async def _canary() -> tuple[float, float]:
    lost, off = 0, 0.0
    async with _path({"old": _nothing, "new": _nothing}) as (path, ports):
        for name in ports:
            path.pod(name)
        for share in (0, 10, 25, 50, 75, 100, 50, 0):
            weights = {"old": 100 - share, "new": share}
            path.route({name: (ports[name], weights[name]) for name in ports})
            found = await _paced(path.port, PHASE, RATE)
            lost += sum(status != 200 for status, _, _ in found)
            heard = sum(body == b"new" for _, body, _ in found) / len(found) * 100
            off = max(off, abs(heard - share))
    return float(lost), off


async def _overload() -> tuple[float, float]:
    async def work() -> None:
        await asyncio.sleep(WORK)

    async with _path({"r": work}) as (path, ports):
        capacity = await _capacity(ports["r"])
        path.pod("r")
        hold = HoldQueue(requests=20)
        path.route({"r": (ports["r"], 100)}, concurrency=SLOTS, hold=hold)
        begin = time.monotonic()
        found = await _paced(path.port, int(2 * capacity * SECONDS), 2 * capacity)
        seconds = time.monotonic() - begin
    served = sum(status == 200 for status, _, _ in found) / seconds
    refused = sorted(took for status, _, took in found if status == 429)
    worst = refused[int(len(refused) * 0.99)] if refused else 0.0
    return served / capacity * 100, worst * 1000


async def _capacity(port: int) -> float:
    """Return how many requests a second the server itself does, SLOTS at a time."""
    end, done = time.monotonic() + SECONDS, 0

    async def ask() -> None:
        nonlocal done
        while time.monotonic() < end:
            await _ask(port)
            done += 1

    await asyncio.gather(*(ask() for _ in range(SLOTS)))
    return done / SECONDS


async def _races() -> float:
    """Close the route while a request comes; a plain controller takes and brings the replica."""
    lost, draw = 0, random.Random(7)
    async with _path({"r": _nothing}) as (path, ports):
        backend = {"r": (ports["r"], 100)}
        for number in range(RACES):
            path.pod("r")
            path.route(backend)
            request = asyncio.ensure_future(_ask(path.port))
            for _ in range(draw.randrange(12)):
                await asyncio.sleep(0)
            token = f"zero-{number}"
            path.route(backend, closing=token)
            gone = False
            while not request.done():
                load = path.table.lanes["n/s"].load()
                if not gone and load.closed == token and not load.in_flight and not load.held:
                    path.pod("r", there=False)
                    gone = True
                elif load.held:
                    path.pod("r")
                    path.route(backend)
                    gone = False
                await asyncio.sleep(0)
            status, _ = await request
            lost += status != 200
    return float(lost)


# --- decisions ---


def _many() -> float:
    router = Router(metadata=ObjectMeta(name="r"), spec=RouterSpec(url="http://h:1"))
    begin = time.process_time()
    for number in range(SERVICES):
        meta = ObjectMeta(name=f"s{number}", namespace="n", uid=str(number))
        box = {"name": "kserve-container", "image": "i", "command": ["serve"]}
        service = InferenceService(metadata=meta, spec=Spec(predictor={"containers": [box]}))
        seen = Seen(service, [], [], [], routers=[router])
        for _ in range(3):
            component = translate(seen)
            made = [a for a in decide(seen, component, 1, 0.0).actions if isinstance(a, Create)]
            revisions, pods = list(seen.revisions), list(seen.pods)
            for one in made:
                if one.resource.kind == "ControllerRevision":
                    revisions.append(convert(one.body, ControllerRevision))
                elif one.resource.kind == "Pod" and not pods:
                    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
                    pods.append(convert({**one.body, "status": ready}, Pod))
            seen = Seen(service, [], revisions, pods, routers=[router])
        told = decide(seen, translate(seen), 1, 0.0).status
        assert told is not None
        assert any(one.type == "Ready" and one.status == "True" for one in told.conditions)
    return time.process_time() - begin


# --- prompts, on replicas that are simulated ---


@dataclass
class Fake:
    """A replica with a cache of blocks, which reads one prompt after the other."""

    uid: str
    in_flight: int = 0
    free_at: float = 0.0
    held: OrderedDict[int, None] = field(default_factory=OrderedDict)
    under_way: list[float] = field(default_factory=list)

    def hits(self, keys: tuple[int, ...]) -> int:
        count = 0
        for key in keys:
            if key not in self.held:
                break
            count += 1
        return count

    def take(self, keys: tuple[int, ...], now: float) -> tuple[int, float]:
        hits = self.hits(keys)
        begin = max(now, self.free_at)
        self.free_at = begin + (len(keys) - hits + 1) * BLOCK_SECONDS
        self.under_way.append(self.free_at)
        for key in reversed(keys):
            self.held[key] = None
            self.held.move_to_end(key)
        while len(self.held) > CACHE:
            self.held.popitem(last=False)
        return hits, self.free_at - now


def _prompts() -> tuple[float, float, float, float]:
    """Return the share of blocks that were held by our choice and by one that knows all, in per
    cent, and the median time to the first token by our choice and by load alone, in ms."""
    prefixes, turn = Prefixes(), iter(range(10**9))

    def ours(there: list[Fake], keys: tuple[int, ...], now: float) -> Fake:
        found = by_prefix(there, keys, prefixes, 0)
        assert found is not None
        prefixes.took(found.uid, keys)
        return found

    def knowing(there: list[Fake], keys: tuple[int, ...], now: float) -> Fake:
        def first(one: Fake) -> float:
            return max(now, one.free_at) + (len(keys) - one.hits(keys)) * BLOCK_SECONDS

        return min(there, key=first)

    def loads(there: list[Fake], keys: tuple[int, ...], now: float) -> Fake:
        found = least_loaded(there, 0, next(turn))
        assert found is not None
        return found

    (held, first), (best, _), (_, blind) = map(_simulated, (ours, knowing, loads))
    return held, best, first, blind


def _simulated(choose: Callable[[list[Fake], tuple[int, ...], float], Fake]) -> tuple[float, float]:
    draw, there = random.Random(3), [Fake(f"r{number}") for number in range(REPLICAS)]
    chats = {group: tuple(hash((group // 4, n)) for n in range(40)) for group in range(GROUPS)}
    now, hits, asked, waits = 0.0, 0, 0, []
    for _ in range(GROUPS * TURNS * 3):
        now += draw.expovariate(40.0)
        group = draw.randrange(GROUPS)
        if len(chats[group]) >= 40 + 8 * TURNS:
            chats[group] = chats[group][:40]
        chats[group] += tuple(draw.getrandbits(60) for _ in range(8))
        for one in there:
            one.under_way = [end for end in one.under_way if end > now]
            one.in_flight = len(one.under_way)
        found, wait = choose(there, chats[group], now).take(chats[group], now)
        hits, asked = hits + found, asked + len(chats[group])
        waits.append(wait)
    return hits / asked * 100, sorted(waits)[len(waits) // 2] * 1000
