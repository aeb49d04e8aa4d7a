"""KServe's batcher: instances of several ``:predict`` requests go to a replica as one request."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lockstep.serve.router.calls import Answer, Asked, Call
from lockstep.serve.router.lane import Lane

_KIND: Final = [(b"Content-Type", b"application/json")]


class _Body(msgspec.Struct):
    instances: list[msgspec.Raw]


class _Reply(msgspec.Struct):
    predictions: list[msgspec.Raw]


_body, _reply = msgspec.json.Decoder(_Body), msgspec.json.Decoder(_Reply)


@dataclass
class _Batch:
    instances: list[msgspec.Raw] = field(default_factory=list)
    parts: list[tuple[int, asyncio.Future[Answer]]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class Batches:
    """The batches of all routes, by route and target."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, bytes], _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, lane: Lane, asked: Asked) -> Answer:
        """Return the predictions for one request, asked for together with those of others."""
        try:
            instances = _body.decode(asked.body).instances
        except msgspec.DecodeError as error:
            return _error(400, f'the body must be like {{"instances": [...]}}: {error}')
        if not instances:
            return _error(400, '"instances" is empty')
        key = (lane.key, asked.target)
        batch = self._due.get(key)
        loop = asyncio.get_running_loop()
        wish = lane.spec.batcher
        if batch is None:
            batch = self._due[key] = _Batch()
            batch.timer = loop.call_later(wish.latency / 1000, self._send, key, lane, asked)
        answer: asyncio.Future[Answer] = loop.create_future()
        batch.instances += instances
        batch.parts.append((len(instances), answer))
        if len(batch.instances) >= wish.size:
            self._send(key, lane, asked)
        return await answer

    def _send(self, key: tuple[str, bytes], lane: Lane, asked: Asked) -> None:
        batch = self._due.pop(key, None)
        if batch is None:
            return
        if batch.timer is not None:
            batch.timer.cancel()
        task = asyncio.ensure_future(self._ask(batch, lane, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, batch: _Batch, lane: Lane, asked: Asked) -> None:
        body = msgspec.json.encode({"instances": batch.instances})
        request = Asked(asked.method, asked.target, asked.headers, body)
        try:
            found = await Call(request).through(lane)
            answers = _split(found, batch)
        except Exception as error:
            answers = [_error(502, f"the batch failed: {error}")] * len(batch.parts)
        for (_, waiting), answer in zip(batch.parts, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)


def _split(found: Answer, batch: _Batch) -> list[Answer]:
    """Return each request's part of the answer; one that is no success goes to all."""
    if found.status != 200:
        return [found] * len(batch.parts)
    predictions = _reply.decode(found.body).predictions
    if len(predictions) != len(batch.instances):
        text = f"{len(predictions)} predictions came for {len(batch.instances)} instances"
        return [_error(502, text)] * len(batch.parts)
    name, start, answers = str(uuid.uuid4()), 0, []
    for count, _ in batch.parts:
        part: dict[str, Any] = {
            "message": "",
            "batchId": name,
            "predictions": predictions[start : start + count],
        }
        answers.append(Answer(200, _KIND, msgspec.json.encode(part)))
        start += count
    return answers


def _error(status: int, message: str) -> Answer:
    return Answer(status, _KIND, json.dumps({"error": message}).encode())
