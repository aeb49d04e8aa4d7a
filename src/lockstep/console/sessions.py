"""Who is signed in: a session holds the user's credentials, and a cookie names the session."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lockstep.console import links
from lockstep.console.rights import Rights
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ConfigError, Forbidden, Unauthorized

if TYPE_CHECKING:
    from lockstep.console.streams import Stream

IDLE = 12 * 3600.0
"""Seconds after which a session that is not used ends."""
LONGEST = 24 * 3600.0
"""Seconds after which a session ends, however much it is used."""
MOST = 2_000
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
LONGEST_TOKEN = 16_384


class Refused(Exception):
    """A sign-in that is not accepted; the message says why and what to do."""


@dataclass(eq=False)
class Session:
    """One user in one browser."""

    user: str
    client: Client
    rights: Rights
    namespace: str
    used: float
    secret: str = field(default="", repr=False)
    began: float = 0.0
    gone: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set when it has ended."""
    streams: dict[str, Stream] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Return whether it has ended, was not used for long, or is a day old."""
        now = _now()
        return self.gone.is_set() or now - self.used > IDLE or now - self.began > LONGEST

    def touch(self) -> None:
        """Note that it is used."""
        self.used = _now()

    def end(self) -> None:
        """End what runs for it."""
        self.gone.set()
        for stream in list(self.streams.values()):
            stream.end()
        self.streams.clear()


class Sessions:
    """The sessions of this process, by their secret."""

    def __init__(self, own: ClusterConfig, state: Path | None) -> None:
        self._own, self._state = own, state
        self._open: dict[str, Session] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def with_token(self, token: str) -> tuple[str, Session]:
        """Sign in with a bearer token; return the session and its secret.

        Raises:
            Refused: when the API server does not know the token.
            ApiError: when it does not answer.
        """
        token = token.strip()
        if (
            not token
            or len(token) > LONGEST_TOKEN
            or not token.isascii()
            or not token.isprintable()
        ):
            raise Refused("token: it is empty or no token; `kubectl create token NAME` makes one")
        own = self._own
        config = ClusterConfig(
            server=own.server,
            ca=own.ca,
            insecure=own.insecure,
            tls_server_name=own.tls_server_name,
            token=token,
        )
        return await self._begin(config)

    async def with_code(self, code: str) -> tuple[str, Session]:
        """Sign in with the code of a one-time link; return the session and its secret.

        Raises:
            Refused: when the link is used, too old or of another cluster.
            ApiError: when the API server does not answer.
        """
        grant = links.redeem(self._state, code) if self._state is not None else None
        if grant is None:
            raise Refused(
                "code: this link was used, or is older than two minutes; `lockstep console` makes "
                "a new one"
            )
        try:
            config = ClusterConfig.load(Path(grant.kubeconfig), grant.context or None)
        except ConfigError as error:
            raise Refused(f"code: {error}") from None
        if (config.server, config.ca) != (self._own.server, self._own.ca):
            raise Refused(
                f"code: the kubeconfig is for {config.server}, and this console for "
                f"{self._own.server}; choose another with --kubeconfig or --context"
            )
        return await self._begin(replace(config, server=self._own.server))

    async def for_user(self, user: str) -> tuple[str, Session]:
        """Sign in a user that a trusted proxy vouches for, by impersonation.

        Raises:
            Refused: when the console's own account may not impersonate.
            ApiError: when the API server does not answer.
        """
        return await self._begin(replace(self._own, acts_as=user, namespace="default"))

    async def _begin(self, config: ClusterConfig) -> tuple[str, Session]:
        self._expire()
        if len(self._open) >= MOST:
            raise Refused(f"there are {MOST} sessions already; try again later")
        client = Client(config)
        try:
            user = await _who(client)
        except (Unauthorized, Forbidden) as error:
            await client.close()
            why = error.message if isinstance(error, Forbidden) else "these credentials"
            raise Refused(f"the API server does not accept {why}") from None
        except BaseException:
            await client.close()
            raise
        secret = secrets.token_urlsafe(32)
        now = _now()
        session = Session(user, client, Rights(client), config.namespace, now, secret, began=now)
        self._open[secret] = session
        return secret, session

    def find(self, secret: str) -> Session | None:
        """Return the session of a cookie, if it is open."""
        session = self._open.get(secret)
        if session is None or session.over:
            return None
        session.touch()
        return session

    def end(self, session: Session) -> None:
        """Sign out."""
        for secret in [s for s, one in self._open.items() if one is session]:
            del self._open[secret]
        session.end()
        task = asyncio.ensure_future(session.client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """End every session."""
        for session in list(self._open.values()):
            self.end(session)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _expire(self) -> None:
        for session in [s for s in self._open.values() if s.over]:
            self.end(session)
        if self._state is not None:
            links.sweep(self._state)


async def _who(client: Client) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.request(
        "POST", WHO, body=msgspec.json.encode(review), deadline=10.0, repeatable=True
    )
    return str(msgspec.json.decode(answer)["status"]["userInfo"]["username"])


def _now() -> float:
    return asyncio.get_running_loop().time()
