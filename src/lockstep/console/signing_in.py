"""The ways to sign in: a token, a one-time link, OpenID Connect, and a proxy that vouches."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, Final

import msgspec
from aiohttp import web

from lockstep.console import answers
from lockstep.console.answers import answer
from lockstep.console.oidc import Issuer
from lockstep.console.sessions import Refused, Session, Sessions

COOKIE_SECONDS: Final = 12 * 3600
LONGEST_USER: Final = 253


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """A bearer token, or the code of a one-time link."""

    token: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the console is reached, and which ways in are open."""

    origins: frozenset[str]
    """Addresses of the console, as ``http://127.0.0.1:7490``."""
    cookie: str
    """Name of the session's cookie; a ``__Host-`` one is sent over TLS alone."""
    issuer: Issuer | None = None
    proxy_header: str = ""
    """Header in which a proxy names the user; none is believed when empty."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = field(default_factory=tuple)
    """From where that header is believed."""


class SigningIn:
    """The endpoints of sessions, and the cookie that names one."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        self._sessions, self._settings = sessions, settings
        self._secure = settings.cookie.startswith("__Host-")

    @property
    def origins(self) -> frozenset[str]:
        """Return the addresses at which the console is reached."""
        return self._settings.origins

    def routes(self, user: Callable[[web.Request], Session]) -> list[web.RouteDef]:
        """Return the routes; *user* raises where no user is signed in."""

        async def sign_out(request: web.Request) -> web.Response:
            self._sessions.end(user(request))
            response = answer({})
            response.del_cookie(self._settings.cookie, path="/", secure=self._secure, httponly=True)
            return response

        return [
            web.get("/api/session", self._who),
            web.post("/api/session", self._sign_in),
            web.delete("/api/session", sign_out),
            web.get("/oidc/start", self._start),
            web.get("/oidc/callback", self._callback),
        ]

    def session(self, request: web.Request) -> Session | None:
        """Return the session of a request, if it has one that is open."""
        return self._sessions.find(request.cookies.get(self._settings.cookie, ""))

    async def _who(self, request: web.Request) -> web.Response:
        session = self.session(request)
        if session is not None:
            return answer(_about(session))
        named = self._vouched(request)
        if named:
            secret, session = await self._sessions.for_user(named)
            return self._begun(answer(_about(session)), secret)
        ways = {"oidc": self._settings.issuer is not None}
        return answers.problem(401, "sign in first", ways=ways)

    async def _sign_in(self, request: web.Request) -> web.Response:
        given: SignIn = await answers.body(request, SignIn)
        sessions = self._sessions
        if given.code:
            secret, session = await sessions.with_code(given.code)
        else:
            secret, session = await sessions.with_token(given.token)
        return self._begun(answer(_about(session)), secret)

    def _vouched(self, request: web.Request) -> str:
        """Return the user that a trusted proxy names; empty where none does."""
        settings = self._settings
        if not settings.proxy_header or request.remote is None:
            return ""
        peer = ip_address(request.remote)
        named = request.headers.getall(settings.proxy_header, [])
        if len(named) != 1 or not any(peer in network for network in settings.proxies):
            return ""
        user = named[0].strip()
        fits = user.isprintable() and len(user) <= LONGEST_USER
        # Names of the cluster's own parts are never a person's.
        return user if fits and not user.startswith("system:") else ""

    async def _start(self, request: web.Request) -> web.StreamResponse:
        issuer = self._issuer()
        address, state = await issuer.begin(self._callback_address(request))
        response = web.HTTPSeeOther(address)
        # Lax: the issuer's page leads back here.
        response.set_cookie(
            self._state_cookie(), state, max_age=600, httponly=True, samesite="Lax",
            secure=self._secure, path="/",
        )  # fmt: skip
        return response

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        """Take the code that the issuer gave to this browser, and begin a session."""
        query, cookie = request.query, request.cookies.get(self._state_cookie(), "")
        state = query.get("state", "")
        if not cookie or not hmac.compare_digest(cookie.encode(), state.encode()):
            raise Refused("oidc: this sign-in began in another browser, or too long ago; try again")
        if error := query.get("error"):
            said = query.get("error_description", error)
            raise Refused(f"oidc: the issuer refuses: {said[:300]}")
        token = await self._issuer().finish(state, query.get("code", ""))
        secret, _ = await self._sessions.with_token(token)
        # A page of the console's own leads on, so that the strict cookie is sent with it.
        page = web.Response(
            text='<!doctype html><meta http-equiv="refresh" content="0;url=/">',
            content_type="text/html",
        )
        page.del_cookie(self._state_cookie(), path="/", secure=self._secure)
        return self._begun(page, secret)

    def _begun(self, response: web.Response, secret: str) -> web.Response:
        response.set_cookie(
            self._settings.cookie,
            secret,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Strict",
            secure=self._secure,
            path="/",
        )
        return response

    def _issuer(self) -> Issuer:
        if self._settings.issuer is None:
            raise web.HTTPNotFound(reason="oidc: this console has no issuer")
        return self._settings.issuer

    def _state_cookie(self) -> str:
        return f"{self._settings.cookie}-oidc"

    def _callback_address(self, request: web.Request) -> str:
        host = request.headers.get("Host", "")
        origin = next(o for o in sorted(self.origins) if o.partition("://")[2] == host)
        return f"{origin}/oidc/callback"


def _about(session: Session) -> dict[str, Any]:
    return {"user": session.user, "namespace": session.namespace}
