"""Asking the keepers of kernels: how a kernel is, and to park it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lockstep.api.wire import Json
from lockstep.notebooks.core.kernel_state import Report

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

ASK_SECONDS: Final = 5.0
PARK_SECONDS: Final = 600.0
MOST: Final = 1 << 20
"""Bytes of the longest answer that is read: a keeper is its user's."""


@dataclass
class Keepers:
    """Connections to keepers; made at first use, for most clusters run no kernel."""

    _session: aiohttp.ClientSession | None = field(default=None, repr=False)

    async def state(self, address: str, token: str) -> Report | None:
        """Return what the keeper at *address* says; none when it does not answer."""
        found = await self._ask("GET", f"http://{address}/state", token, ASK_SECONDS)
        try:
            return None if found is None else msgspec.convert(found, Report)
        except msgspec.ValidationError as error:
            log.warning("the keeper at %s says what makes no sense: %s", address, error)
            return None

    async def park(self, address: str, token: str, *, drop: bool) -> Json | None:
        """Let the keeper at *address* park its kernel; none when it does not answer."""
        url = f"http://{address}/park?drop={'true' if drop else 'false'}"
        return await self._ask("POST", url, token, PARK_SECONDS)

    async def _ask(self, method: str, url: str, token: str, seconds: float) -> Json | None:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.request(
                    method, url, headers={"Authorization": f"Bearer {token}"}
                ) as answer,
            ):
                if answer.status != 200:
                    return None
                return msgspec.json.decode(await answer.content.read(MOST), type=dict[str, Any])
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            log.debug("%s: %s", url, error)
            return None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
