"""What the node's log server does about readers that leave."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import ClientConnectionResetError, web
from aiohttp.test_utils import make_mocked_request

from lockstep.nodes.process import log_server
from lockstep.nodes.process.log_server import LogServer, Shelf


class OneLog:
    def __init__(self, log: Path) -> None:
        self._log = log

    def find(self, *_: str, previous: bool) -> tuple[Path, Callable[[], bool]]:
        return self._log, lambda: False


@pytest.mark.parametrize("leaves_at", ["prepare", "write", "write_eof"])
async def test_a_reader_that_leaves_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, leaves_at: str
) -> None:
    log = tmp_path / "log"
    log.write_text("2026-01-01T00:00:00.000000000Z stdout F one\n")
    shelf, context = cast("Shelf", OneLog(log)), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = LogServer(shelf, context, "127.0.0.1")
    monkeypatch.setattr(log_server, "admit", lambda _: None)

    async def gone(*_: Any) -> None:
        raise ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, leaves_at, gone)
    place = {"namespace": "default", "pod": "p", "container": "main"}
    request = make_mocked_request("GET", "/containerLogs/default/p/main", match_info=place)
    assert (await server._serve(request)).status == 200
