"""Reading a long list in pages, each asked for while the one before it is decoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lockstep.api.wire import Wire
from lockstep.kube.codec import Unreadable, decode_page, next_page
from lockstep.kube.errors import Gone

T = TypeVar("T", bound=Wire)

Ask = Callable[[Mapping[str, str]], Coroutine[Any, Any, bytes]]
"""Sends the request for a list with these parameters and returns the answer's body."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A whole list as of *resource_version*; *unreadable* did not fit the view."""

    items: list[T]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()


async def read_list(ask: Ask, type_: type[T], params: Mapping[str, str], limit: int) -> Listing[T]:
    """Return the whole list, read in pages of *limit* objects, or as one where that is 0.

    Where the server loses the snapshot between two pages the list is read again as one.

    Raises:
        ApiError: what *ask* raises.
        Undecodable: when an answer is not a list.
    """
    first = {**params, "limit": str(limit)} if limit else params
    items: list[T] = []
    unreadable: list[Unreadable] = []
    version = ""
    try:
        async with aclosing(_bodies(ask, first)) as bodies:
            async for body in bodies:
                page, problems = decode_page(type_, body)
                items += page.items or ()
                unreadable += problems
                version = page.metadata.resource_version
    except Gone:
        if not version:
            raise
        return await read_list(ask, type_, params, 0)
    return Listing(items, version, tuple(unreadable))


async def _bodies(ask: Ask, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    """Yield the pages; while the reader is busy with one, the server makes the next."""
    asked = dict(params)
    answer = asyncio.create_task(ask(asked))
    try:
        while True:
            body = await answer
            token = next_page(body)
            if token:
                # A later page is of the first one's version; naming another is refused.
                asked = {k: v for k, v in asked.items() if k != "resourceVersion"}
                asked["continue"] = token
                answer = asyncio.create_task(ask(asked))
                # The request must be under way before the reader keeps the loop to itself.
                await asyncio.sleep(0)
            yield body
            if not token:
                return
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
