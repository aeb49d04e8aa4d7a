"""Fixtures of the client's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.support.fake_server import FakeServer


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeServer]:
    """A fake server that fails on command."""
    running = await FakeServer().start()
    yield running
    await running.close()
