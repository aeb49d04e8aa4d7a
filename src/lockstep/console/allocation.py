"""OpenCost's ``GET /allocation`` over the usage records, for what reads those answers.

It takes the console's own session, or a bearer token with each request, as programs send it.
Namespaces whose jobs the user may not list are left out, and free GPU time with them.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

from aiohttp import web

from lockstep.console.answers import answer
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.records import NoRecords, Records
from lockstep.console.sessions import Session, Sessions
from lockstep.console.signing_in import SigningIn
from lockstep.insight.cost import windows

MOST_TOKENS: Final = 200
PATHS: Final = ("/allocation", "/allocation/compute", "/model/allocation")
"""OpenCost's path, its older name, and Kubecost's."""


class Allocation:
    """The endpoint."""

    def __init__(
        self, world: ClusterCache, sessions: Sessions, signing_in: SigningIn, records: Records
    ) -> None:
        self._world, self._sessions = world, sessions
        self._signing_in, self._records = signing_in, records
        self._by_token: dict[bytes, str] = {}
        """Secrets of sessions by the digest of the token that began them."""

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.get(path, self._allocation) for path in PATHS]

    async def _allocation(self, request: web.Request) -> web.Response:
        session = await self._user(request)
        try:
            asked = windows.read(request.query, time.time())
        except windows.BadQuestion as error:
            return _failed(400, str(error))
        if not await self._world.ready():
            return _failed(503, f"the API server is being read: {self._world.problem()}")
        try:
            return answer(await self._records.allocations(session, asked))
        except NoRecords as error:
            return _failed(404, str(error))

    async def _user(self, request: web.Request) -> Session:
        """Return who asks.

        Raises:
            HTTPUnauthorized: when that is not said.
            Refused: when the API server does not know the token.
        """
        session = self._signing_in.session(request)
        if session is not None:
            return session
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise web.HTTPUnauthorized(reason="send Authorization: Bearer TOKEN, or sign in")
        digest = hashlib.sha256(token.strip().encode()).digest()
        known = self._sessions.find(self._by_token.get(digest, ""))
        if known is not None:
            return known
        secret, session = await self._sessions.with_token(token)
        if len(self._by_token) >= MOST_TOKENS:
            oldest = self._sessions.find(self._by_token.pop(next(iter(self._by_token))))
            if oldest is not None:
                self._sessions.end(oldest)
        self._by_token[digest] = secret
        return session


def _failed(code: int, message: str) -> web.Response:
    return answer({"code": code, "status": "error", "message": message, "data": None}, code)
