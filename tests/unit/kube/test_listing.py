"""Reading a list in pages: what is asked for, when, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest
from tests.support.waiting import eventually

from lockstep.api.core import Pod
from lockstep.kube import codec
from lockstep.kube.errors import Gone, Undecodable, Unreachable
from lockstep.kube.listing import read_list

Params = dict[str, str]


def page(*names: str, following: str = "") -> bytes:
    items = [{"metadata": {"name": name}} for name in names]
    metadata = {"resourceVersion": "7", "continue": following}
    return json.dumps({"kind": "PodList", "metadata": metadata, "items": items}).encode()


class Server:
    """Answers with each of *answers* in turn, and notes what it was asked for."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.asked: list[Params] = []
        self.cancelled = 0
        self.held = asyncio.Event()
        self.held.set()
        self._answers = iter(answers)

    async def ask(self, params: Mapping[str, str]) -> bytes:
        self.asked.append(dict(params))
        answer = next(self._answers)
        try:
            await self.held.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_later_page_is_requested_by_token_without_a_version() -> None:
    server = Server(page("a", "b", following="t1"), page("c", following="t2"), page("d"))
    params = {"labelSelector": "x", "resourceVersion": "0"}
    listing = await read_list(server.ask, Pod, params, 2)
    assert [pod.metadata.name for pod in listing.items] == ["a", "b", "c", "d"]
    assert listing.resource_version == "7"
    assert server.asked == [
        {"labelSelector": "x", "resourceVersion": "0", "limit": "2"},
        {"labelSelector": "x", "limit": "2", "continue": "t1"},
        {"labelSelector": "x", "limit": "2", "continue": "t2"},
    ]


async def test_a_page_is_decoded_while_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(page("a", following="t"), page("b"))
    asked_when_decoding: list[int] = []

    def decode(type_: type[Pod], data: bytes) -> object:
        asked_when_decoding.append(len(server.asked))
        return codec.decode_page(type_, data)

    monkeypatch.setattr("lockstep.kube.listing.decode_page", decode)
    await read_list(server.ask, Pod, {}, 1)
    assert asked_when_decoding == [2, 2]


async def test_a_list_whose_snapshot_is_lost_is_read_again() -> None:
    server = Server(page("a", following="t"), Gone(410, "Expired", "old"), page("a", "b"))
    listing = await read_list(server.ask, Pod, {"fieldSelector": "x"}, 1)
    assert [pod.metadata.name for pod in listing.items] == ["a", "b"]
    assert server.asked[-1] == {"fieldSelector": "x"}


@pytest.mark.parametrize("error", [Gone(410, "Expired", "old"), Unreachable("Connection", "lost")])
async def test_a_first_page_that_fails_fails_the_list(error: Exception) -> None:
    server = Server(error)
    with pytest.raises(type(error)):
        await read_list(server.ask, Pod, {}, 1)
    assert len(server.asked) == 1


async def test_nothing_is_under_way_when_a_page_was_no_list() -> None:
    server = Server(b'{"metadata": {"continue": "t"}, "items": 3}', page("b"))
    with pytest.raises(Undecodable):
        await read_list(server.ask, Pod, {}, 1)
    assert len(asyncio.all_tasks()) == 1


async def test_giving_up_a_list_cancels_its_running_request() -> None:
    server = Server(page("a"))
    server.held.clear()
    reading = asyncio.create_task(read_list(server.ask, Pod, {}, 1))
    await eventually(lambda: server.asked)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert server.cancelled == 1


@pytest.mark.parametrize(
    ("data", "token"),
    [
        (b'{"metadata":{"continue":"t"},"items":[{"broken', "t"),
        (b'{"kind":"PodList","metadata":{"continue":"t"}, "items" : null}', "t"),
        (b'{"metadata":{"resourceVersion":"7"},"items":[]}', ""),
        (b'{"metadata":{"continue":"t"}}', "t"),
        (b'{"items":[{"metadata":{"continue":"no"}}],"metadata":{"continue":"t"}}', "t"),
        (b'{"metadata":{"x":{"a":1,"items":2},"continue":"t"},"items":[]}', "t"),
        (b'{"a":"x,\\"items\\":","metadata":{"continue":"t"},"items":[]}', "t"),
    ],
)
def test_the_next_pages_token_is_found_anywhere_in_the_answer(data: bytes, token: str) -> None:
    assert codec.next_page(data) == token


def test_what_is_no_list_has_no_next_page() -> None:
    with pytest.raises(Undecodable):
        codec.next_page(b'{"items": []}')
