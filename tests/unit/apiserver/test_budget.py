"""Work that is put off: a request waits for it, others do not."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable

import pytest

from lockstep.apiserver.budget import Later, TooCostly, apart, decided, draw, is_answered


async def nothing() -> None:
    pass


def spin() -> bytes:
    """Take more processor time than there is."""
    end = time.process_time() + 30
    while time.process_time() < end:
        pass
    return b"never"


def test_without_a_request_the_answer_is_waited_for() -> None:
    assert apart(b"question", lambda: b"answer") == b"answer"
    with pytest.raises(TooCostly):
        apart(b"question", spin)


async def test_a_request_is_decided_anew_with_the_answer() -> None:
    tries: list[int] = []
    renewed: list[int] = []

    async def decide() -> bytes:
        tries.append(1)
        return apart(b"question", lambda: b"answer")

    async def renew() -> None:
        renewed.append(1)

    assert await decided(decide, renew) == b"answer"
    assert (len(tries), len(renewed)) == (2, 1)


async def test_an_answered_request_is_not_tried_again() -> None:
    tried: list[bool] = []

    async def decide() -> bytes:
        tried.append(is_answered())
        return apart(b"question", lambda: b"answer")

    await decided(decide, nothing)
    assert tried == [False, True]
    assert not is_answered()


async def test_others_are_served_while_a_fork_works() -> None:
    served = 0

    async def others() -> None:
        nonlocal served
        while True:
            served += 1
            await asyncio.sleep(0)

    async def decide() -> bytes:
        return apart(b"question", spin)

    task = asyncio.create_task(others())
    with pytest.raises(TooCostly):
        await decided(decide, nothing)
    task.cancel()
    assert served > 10


async def test_a_question_that_always_changes_is_given_up() -> None:
    asked = 0

    async def decide() -> bytes:
        nonlocal asked
        asked += 1
        return apart(b"%d" % asked, lambda: b"answer")

    with pytest.raises(TooCostly):
        await decided(decide, nothing)


async def test_requests_do_not_see_each_others_answers() -> None:
    def asking(answer: bytes) -> Callable[[], Awaitable[bytes]]:
        async def decide() -> bytes:
            return apart(b"same", lambda: answer)

        return decide

    found = await asyncio.gather(*(decided(asking(a), nothing) for a in (b"one", b"two")))
    assert found == [b"one", b"two"]


async def test_what_is_put_off_is_no_answer() -> None:
    async def decide() -> bytes:
        with pytest.raises(Later):
            apart(b"question", lambda: b"answer")
        return b"done"

    assert await decided(decide, nothing) == b"done"


async def test_what_is_drawn_stays_when_a_request_is_decided_anew() -> None:
    asked: list[bytes] = []

    async def decide() -> bytes:
        question = draw(0, lambda: secrets.token_hex(8)).encode()
        asked.append(question)
        return apart(question, lambda: b"answer")

    assert await decided(decide, nothing) == b"answer"
    assert asked[0] == asked[1]
    await decided(decide, nothing)
    assert asked[2] != asked[0]
