"""KServe's payload logger: requests and answers as CloudEvents, beside what they log."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import Final
from urllib.parse import urlsplit

from lockstep.api.timestamp import show
from lockstep.serve.router.calls import Asked, Call, Headers
from lockstep.serve.router.lane import Lane
from lockstep.serve.router.upstream import Pool

log = logging.getLogger(__name__)

QUEUE: Final = 1000
WORKERS: Final = 4
MOST_BYTES: Final = 4 << 20
"""Larger bodies are not logged."""
TIMEOUT: Final = 10.0
_TYPE: Final = "org.kubeflow.serving.inference"
Event = tuple[Lane, str, str, bytes, Headers]


class Payloads:
    """Sends events; what comes faster than it can be sent is dropped, and counted."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(QUEUE)
        self._workers: list[asyncio.Task[None]] = []
        self._pools: dict[tuple[str, int], Pool] = {}
        self.dropped = 0

    def log(self, lane: Lane, kind: str, number: str, body: bytes, headers: Headers) -> None:
        """Send the *body* of a ``request`` or ``response``; *number* is the same for both."""
        if lane.spec.logger.mode not in ("all", kind) or len(body) > MOST_BYTES:
            return
        while len(self._workers) < WORKERS:
            self._workers.append(asyncio.ensure_future(self._work()))
        try:
            self._queue.put_nowait((lane, kind, number, body, headers))
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped & (self.dropped - 1) == 0:
                log.warning("%d payloads were not logged: the queue is full", self.dropped)

    async def _work(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._send(*event)
            except Exception as error:
                log.warning("a payload of %s was not logged: %s", event[0].key, error)

    async def _send(
        self, lane: Lane, kind: str, number: str, body: bytes, headers: Headers
    ) -> None:
        url = urlsplit(lane.spec.logger.url)
        where = (url.hostname or "", url.port or 80)
        namespace, _, name = lane.key.partition("/")
        said = {
            "Host": url.netloc,
            "Content-Type": "application/json",
            "Ce-Specversion": "1.0",
            "Ce-Id": number,
            "Ce-Source": f"http://{where[0]}",
            "Ce-Type": f"{_TYPE}.{kind}",
            "Ce-Time": show(time.time()),
            "Ce-Inferenceservicename": name,
            "Ce-Namespace": namespace,
            "Ce-Component": "predictor",
            "Ce-Endpoint": "",
        }
        wanted = {one.lower().encode() for one in lane.spec.logger.metadata_headers}
        sent = [(k.encode(), v.encode()) for k, v in said.items()]
        sent += [(b"Ce-" + k, v) for k, v in headers if k.lower() in wanted]
        pool = self._pools.setdefault(where, Pool(*where))
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        found = await Call(Asked(b"POST", path.encode(), sent, body)).at(pool, TIMEOUT)
        if found.status >= 300:
            raise ConnectionError(f"{lane.spec.logger.url} answered {found.status}")

    def close(self) -> None:
        """Send no more."""
        for one in self._workers:
            one.cancel()


def number() -> str:
    """Return an id for a request and its answer."""
    return str(uuid.uuid4())
