"""Metrics for those who may read them: the API server is asked who they are and what they may."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from lockstep.api.core import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from lockstep.http.message import Request, Response
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.kube.listener import answer

log = logging.getLogger(__name__)

PATH: Final = "/metrics"
KEPT: Final = 60.0
"""Seconds for which a verdict on a token holds."""
MOST_KEPT: Final = 64
_REFUSALS: Final = {
    401: answer(401, b"a bearer token of this cluster is needed\n"),
    403: answer(403, b"this user may not get the URL /metrics\n"),
    503: answer(503, b"the API server cannot say who this is\n"),
}


class Gate:
    """Lets scrapers through that the API server knows and that may ``get`` the URL /metrics."""

    def __init__(
        self,
        client: Client,
        metrics: Callable[[], Response],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Those who stand by write nothing else, but have metrics too.
        self._client = client.unfenced()
        self._metrics = metrics
        self._clock = clock
        self._verdicts: dict[bytes, tuple[float, int]] = {}
        self._asking = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Return the metrics, or why not."""
        if request.path != PATH:
            return answer(404, b"there is /metrics\n")
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return _REFUSALS[401]
        status = await self._verdict(token.strip())
        return self._metrics() if status == 200 else _REFUSALS[status]

    async def _verdict(self, token: str) -> int:
        key = hashlib.sha256(token.encode()).digest()
        # One question at a time: a flood of tokens here must not become one there.
        async with self._asking:
            until, status = self._verdicts.get(key, (0.0, 0))
            if self._clock() < until:
                return status
            try:
                status = await self._ask(token)
            except ApiError as error:
                log.warning("who scrapes the metrics cannot be found out: %s", error)
                return 503
            if len(self._verdicts) >= MOST_KEPT:
                self._verdicts.clear()
            self._verdicts[key] = (self._clock() + KEPT, status)
            return status

    async def _ask(self, token: str) -> int:
        review = await self._client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        if not review.status.get("authenticated"):
            return 401
        user: dict[str, Any] = review.status.get("user") or {}
        spec = {
            "user": user.get("username"),
            "uid": user.get("uid"),
            "groups": user.get("groups"),
            "extra": user.get("extra"),
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        asked = {"spec": {name: value for name, value in spec.items() if value}}
        access = await self._client.create(SUBJECT_ACCESS_REVIEWS, asked)
        return 200 if access.status.get("allowed") else 403
