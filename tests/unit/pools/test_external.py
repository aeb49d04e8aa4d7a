"""Programs and HTTP hooks as providers: what they are told, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.pooled import pool

from lockstep.api.node_pool import PoolHolder, PoolRequest
from lockstep.pools.providers.contract import ProviderError
from lockstep.pools.providers.external import by_command, by_hook

REQUEST = PoolRequest(
    id="p-0-1",
    slots=[0, 1],
    at="2026-01-01T00:00:00Z",
    holders=[PoolHolder(kind="Gang", namespace="default", name="a", uid="u")],
)
PROGRAM = "#!/bin/sh\ncat > $0.told\n{}\n"
WRONG = [
    # what it does, the reason that is told, words of the message
    ("sleep 30", "TimedOut", "no answer to create in time"),
    ("echo no json", "BadAnswer", "cannot be read"),
    ("echo broken >&2; exit 3", "ProviderFailed", "exit code 3: broken"),
    ("""echo '{"reason": "OutOfStock", "message": "none in zone b"}'""", "OutOfStock", "zone b"),
]


def program(directory: Path, does: str) -> dict[str, Any]:
    """Write a program and return the provider that names it."""
    path = directory / "cloud"
    path.write_text(PROGRAM.format(does))
    path.chmod(0o755)
    return {"command": {"program": "cloud", "timeout": "1s"}}


async def test_a_program_is_told_of_each_node(tmp_path: Path) -> None:
    asked = pool("p: 8x8 leaf=4 spot", provider=program(tmp_path, "echo '{}'"))
    await by_command(tmp_path).create(asked, REQUEST, [0, 1])
    told = json.loads((tmp_path / "cloud.told").read_text())
    assert [node["name"] for node in told["nodes"]] == ["p-0", "p-1"]
    assert told["nodes"][1]["labels"]["leaf"] == "p-0"
    assert told["nodes"][0]["taints"][-1]["value"] == "p-0-1"
    assert (told["call"], told["spot"]) == ("create", True)


@pytest.mark.parametrize(("does", "reason", "words"), WRONG)
async def test_what_goes_wrong_is_named(tmp_path: Path, does: str, reason: str, words: str) -> None:
    asked = pool("p: 8x8", provider=program(tmp_path, does))
    with pytest.raises(ProviderError, match=words) as failed:
        await by_command(tmp_path).create(asked, REQUEST, [0])
    assert failed.value.reason == reason


async def test_no_program_outside_the_directory_is_run(tmp_path: Path) -> None:
    asked = pool("p: 8x8", provider={"command": {"program": "cloud"}})
    for directory in (None, tmp_path):
        with pytest.raises(ProviderError) as failed:
            await by_command(directory).present(asked)
        assert failed.value.reason == "ProviderMissing"


@contextlib.asynccontextmanager
async def hook(answer: Any) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve an address that answers *answer*; what it was told is kept."""
    told: list[Any] = []

    async def take(request: web.Request) -> web.StreamResponse:
        told.append((request.headers.get("Authorization"), await request.json()))
        if answer is None:
            await asyncio.sleep(30)
        return web.json_response(answer)

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", told
    finally:
        await runner.cleanup()


async def secret(name: str) -> str:
    return f"token of {name}"


async def test_a_hook_lists_its_nodes_and_gets_its_token() -> None:
    async with hook({"slots": [0, 3]}) as (url, told):
        asked = pool("p: 8x8", provider={"hook": {"url": url, "tokenSecret": "cloud"}})
        assert (await by_hook(secret).present(asked)).slots == {0, 3}
        assert told == [("Bearer token of cloud", {"call": "list", "pool": "p"})]


async def test_a_hook_that_hangs_is_left_after_its_timeout() -> None:
    async with hook(None) as (url, _):
        asked = pool("p: 8x8", provider={"hook": {"url": url, "timeout": "100ms"}})
        with pytest.raises(ProviderError) as failed:
            await by_hook(secret).create(asked, REQUEST, [0])
        assert failed.value.reason == "TimedOut"


async def test_a_hook_that_is_not_there_is_named() -> None:
    asked = pool("p: 8x8", provider={"hook": {"url": "http://127.0.0.1:9/"}})
    with pytest.raises(ProviderError, match="cannot be reached"):
        await by_hook(secret).create(asked, REQUEST, [0])
