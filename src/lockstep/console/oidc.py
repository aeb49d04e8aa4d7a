"""Signing in at an OpenID Connect issuer: the code flow with PKCE.

What comes out is an ID token, which goes to the API server as a bearer token; that checks its
signature. The console itself only holds it to the request that it belongs to.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from lockstep.api.wire import Json
from lockstep.console.sessions import Refused

VALID: Final = 600.0
"""Seconds within which a sign-in must come back."""
MOST_WAITING: Final = 1_000
PATIENCE: Final = 15.0
LARGEST: Final = 1 << 20
SCOPES: Final = "openid email profile groups"


@dataclass(frozen=True, slots=True)
class _Begun:
    verifier: str
    nonce: str
    back: str
    at: float


class Issuer:
    """One issuer, and the sign-ins that are under way there."""

    def __init__(
        self, address: str, client_id: str, secret: str = "", trust: ssl.SSLContext | None = None
    ) -> None:
        """Take the issuer's address and the client that the console is there.

        Raises:
            ValueError: when codes and tokens would travel in the clear.
        """
        parts = urlsplit(address)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError(f"issuer {address}: tokens would travel in the clear; use https")
        self._address, self._client, self._secret = address.rstrip("/"), client_id, secret
        self._trust = trust
        self._begun: dict[str, _Begun] = {}

    async def begin(self, back: str) -> tuple[str, str]:
        """Return where the browser goes to sign in, and the state that comes back with it.

        Raises:
            Refused: when the issuer does not answer.
        """
        about = await self._about()
        now = _now()
        self._begun = {s: one for s, one in self._begun.items() if now - one.at < VALID}
        if len(self._begun) >= MOST_WAITING:
            raise Refused("oidc: too many sign-ins are under way; try again soon")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        self._begun[state] = _Begun(verifier, nonce, back, now)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": back,
            "scope": SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        there = str(about["authorization_endpoint"])
        return f"{there}{'&' if '?' in there else '?'}{urlencode(asked)}", state

    async def finish(self, state: str, code: str) -> str:
        """Return the ID token for a code; each state counts once.

        Raises:
            Refused: when the issuer refuses, or the token is not of this sign-in.
        """
        begun = self._begun.pop(state, None)
        if begun is None or _now() - begun.at > VALID or not code:
            raise Refused("oidc: this sign-in is over; begin again")
        about = await self._about()
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.back,
            "client_id": self._client,
            "code_verifier": begun.verifier,
        }
        if self._secret:
            given["client_secret"] = self._secret
        answer = await self._call("POST", str(about["token_endpoint"]), given)
        token = str(answer.get("id_token", ""))
        claims = _claims(token)
        audience = claims.get("aud")
        meant = audience if isinstance(audience, list) else [audience]
        if self._client not in meant or str(claims.get("iss", "")).rstrip("/") != self._address:
            raise Refused("oidc: the token is of another issuer or for another client")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), begun.nonce.encode()):
            raise Refused("oidc: the token is of another sign-in")
        return token

    async def _about(self) -> Json:
        found = await self._call("GET", f"{self._address}/.well-known/openid-configuration")
        for field in ("authorization_endpoint", "token_endpoint"):
            there = urlsplit(str(found.get(field, "")))
            if there.scheme != "https" and there.hostname != urlsplit(self._address).hostname:
                raise Refused(f"oidc: the issuer names no {field} that can be trusted")
        return found

    async def _call(self, method: str, address: str, form: Json | None = None) -> Json:
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.request(
                    method, address, data=form, ssl=self._trust or True, allow_redirects=False
                ) as answer,
            ):
                body = await answer.content.read(LARGEST)
                if answer.status != 200:
                    raise Refused(f"oidc: the issuer answers {answer.status}")
                found = msgspec.json.decode(body)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise Refused(f"oidc: {self._address} cannot be asked: {error}") from None
        if not isinstance(found, dict):
            raise Refused("oidc: the issuer's answer is no object")
        return found


def _claims(token: str) -> Json:
    """Return what a token says, without checking its signature; the API server does that."""
    parts = token.split(".")
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        found = msgspec.json.decode(base64.urlsafe_b64decode(padded))
    except (IndexError, ValueError, msgspec.DecodeError):
        raise Refused("oidc: the issuer gave no ID token") from None
    return found if isinstance(found, dict) else {}


def _now() -> float:
    return asyncio.get_running_loop().time()
