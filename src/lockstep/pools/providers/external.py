"""Providers outside: a program or an HTTP address that is told what to do in JSON.

It is told one of three things::

    {"call": "create", "pool": "gpu", "request": "gpu-0-1760000000",
     "nodes": [{"slot": 0, "name": "gpu-0", "labels": {...}, "taints": [...]}],
     "capacity": {"cpu": 96, "nvidia.com/gpu": 8}, "spot": false}
    {"call": "delete", "pool": "gpu", "nodes": [{"slot": 0, "name": "gpu-0"}]}
    {"call": "list", "pool": "gpu"}

and answers ``{}``, for a list ``{"slots": [0, 1]}``, or ``{"reason": "OutOfStock", "message":
"..."}`` where it cannot. Each call may come again. A node must join the cluster with the labels and
taints that it was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from lockstep.api import duration
from lockstep.api.node_pool import PoolRequest
from lockstep.api.wire import Json
from lockstep.pools.core.pool import Pool
from lockstep.pools.providers.contract import Presence, ProviderError, taints

ANSWER_LIMIT = 1 << 20
"""Bytes of an answer; a longer one is not read."""
SAID_LIMIT = 500
"""Characters of what a program said on its standard error that are passed on."""

Tell = Callable[[Pool, bytes], Awaitable[bytes]]


class _Answer(msgspec.Struct):
    reason: str = ""
    message: str = ""
    slots: list[int] | None = None


class ExternalProvider:
    """A provider outside, called in JSON through a program or an HTTP address."""

    removes_nodes = False

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    async def create(self, pool: Pool, request: PoolRequest, slots: Sequence[int]) -> None:
        """Have the nodes made."""
        await self._ask(pool, _creation(pool, request, slots))

    async def delete(self, pool: Pool, slots: Mapping[int, str]) -> None:
        """Have the nodes removed."""
        nodes = [{"slot": n, "name": name or pool.node_name(n)} for n, name in slots.items()]
        await self._ask(pool, {"call": "delete", "pool": pool.name, "nodes": nodes})

    async def present(self, pool: Pool) -> Presence:
        """Ask which nodes there are."""
        answer = await self._ask(pool, {"call": "list", "pool": pool.name})
        if answer.slots is None:
            raise ProviderError(
                f'pool {pool.name}: its provider lists no slots; answer {{"slots": [...]}} to list',
                "BadAnswer",
            )
        return Presence(frozenset(answer.slots))

    async def _ask(self, pool: Pool, call: Json) -> _Answer:
        told = msgspec.json.encode(call)
        try:
            text = await self._tell(pool, told)
            answer = msgspec.json.decode(text or b"{}", type=_Answer)
        except TimeoutError:
            raise ProviderError(
                f"pool {pool.name}: no answer to {call['call']} in time; raise its timeout, or "
                "answer sooner and go on in the background",
                "TimedOut",
            ) from None
        except msgspec.MsgspecError as error:
            raise ProviderError(
                f"pool {pool.name}: the answer to {call['call']} cannot be read: {error}",
                "BadAnswer",
            ) from None
        if answer.reason:
            raise ProviderError(answer.message or answer.reason, _word(answer.reason))
        return answer


def _word(text: str) -> str:
    """Return a reason as events take it: one word of letters."""
    word = "".join(letter for letter in text if letter.isascii() and letter.isalnum())
    return word[:60] or "ProviderFailed"


def _creation(pool: Pool, request: PoolRequest, slots: Sequence[int]) -> Json:
    spec = pool.object.spec
    bears = taints(spec.template.taints, request)
    nodes = [
        {"slot": n, "name": pool.node_name(n), "labels": pool.labels(n), "taints": bears}
        for n in slots
    ]
    return {
        "call": "create",
        "pool": pool.name,
        "request": request.id,
        "nodes": nodes,
        "capacity": spec.template.capacity,
        "spot": spec.spot,
    }


def by_command(directory: Path | None) -> ExternalProvider:
    """Return the provider of pools that name a program in *directory*."""

    async def tell(pool: Pool, told: bytes) -> bytes:
        command = pool.object.spec.provider.command
        if command is None or directory is None:
            raise ProviderError(
                "spec.provider.command: no directory of programs; start `lockstep controllers` "
                "with --pool-commands DIRECTORY",
                "ProviderMissing",
            )
        return await _run(directory / command.program, told, duration.parse(command.timeout))

    return ExternalProvider(tell)


async def _run(program: Path, told: bytes, seconds: float) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            str(program),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ProviderError(
            f"spec.provider.command.program: {program.name} cannot be run: {error.strerror}",
            "ProviderMissing",
        ) from None
    try:
        async with asyncio.timeout(seconds):
            out, said = await process.communicate(told)
    finally:
        if process.returncode is None:
            # With all that it started: one of them would hold its output open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        words = said.decode(errors="replace").strip()[-SAID_LIMIT:]
        raise ProviderError(f"{program.name} ended with exit code {process.returncode}: {words}")
    return out[:ANSWER_LIMIT]


Token = Callable[[str], Awaitable[str]]
"""Returns the token of a Secret by its name."""


def by_hook(token: Token) -> ExternalProvider:
    """Return the provider of pools that name an HTTP address; *token* reads their secrets."""

    async def tell(pool: Pool, told: bytes) -> bytes:
        hook = pool.object.spec.provider.hook
        if hook is None:
            raise ProviderError("spec.provider.hook is not set", "ProviderMissing")
        headers = {"Content-Type": "application/json"}
        if hook.token_secret:
            headers["Authorization"] = f"Bearer {await token(hook.token_secret)}"
        return await _post(hook.url, told, headers, duration.parse(hook.timeout))

    return ExternalProvider(tell)


async def _post(url: str, told: bytes, headers: Mapping[str, str], seconds: float) -> bytes:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=told, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status >= 300:
                raise ProviderError(f"{url} answers with HTTP status {answer.status}")
            return await answer.content.read(ANSWER_LIMIT)
    except aiohttp.ClientError as error:
        raise ProviderError(f"{url} cannot be reached: {error}", "Unreachable") from None
