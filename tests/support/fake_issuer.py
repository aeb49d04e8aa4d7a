"""A fake OpenID Connect issuer: one user, the code flow with PKCE, TLS, and signed ID tokens.

It checks what a real one checks. A test can spoil its answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from lockstep.keys.authority import self_signed

CLIENT, SECRET = "lockstep", "of-the-client"
WIDTH = 32
"""Bytes of a number on the curve P-256."""
Json = dict[str, Any]


def text(raw: bytes) -> str:
    """Return bytes as JOSE writes them."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class FakeIssuer:
    """An issuer at which ``ana`` is signed in already."""

    def __init__(self, directory: Path) -> None:
        self.codes: dict[str, dict[str, str]] = {}
        self.spoilt: Json = {}
        """Claims and fields of its description that are told wrongly."""
        self.given: list[str] = []
        """The ID tokens that it gave away."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca = directory / "issuer.pem"
        certificate, key = self_signed("localhost", addresses=("127.0.0.1",))
        self.ca.write_bytes(certificate)
        pair = directory / "issuer-pair.pem"
        pair.write_bytes(certificate + key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.netloc = f"localhost:{self._server.server_port}"
        self.url = f"https://{self.netloc}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path)
                if path.path == "/.well-known/openid-configuration":
                    self.answer(200, issuer.about())
                elif path.path == "/keys":
                    self.answer(200, {"keys": [issuer.public_key()]})
                elif path.path == "/authorize":
                    asked = {k: v[0] for k, v in parse_qs(path.query).items()}
                    self.send_response(303)
                    self.send_header("Location", issuer.authorize(asked))
                    self.end_headers()
                else:
                    self.answer(404, {})

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.answer(*issuer.token({k: v[0] for k, v in form.items()}))

            def answer(self, status: int, body: Json) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler

    def about(self) -> Json:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            **self.spoilt.get("about", {}),
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser goes back to, its user being signed in."""
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'state': asked['state'], 'code': code})}"

    def token(self, form: dict[str, str]) -> tuple[int, Json]:
        """Answer the back channel: each code counts once, for its client and its verifier."""
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = text(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or form.get("redirect_uri") != asked["redirect_uri"]
            or form.get("client_secret") != SECRET
        ):
            return 400, {"error": "invalid_grant"}
        token = self.id_token(asked["nonce"])
        self.given.append(token)
        return 200, {"id_token": token, "token_type": "Bearer"}

    def id_token(self, nonce: str) -> str:
        """Return a signed token for one sign-in."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "ana", "iat": now, "exp": now + 3600}
        told = {**claims, "nonce": nonce, "groups": ["dev"], **self.spoilt.get("claims", {})}
        head = {"alg": "ES256", "kid": "one"}
        signed = ".".join(text(json.dumps(part).encode()) for part in (head, told))
        signature = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        numbers = decode_dss_signature(signature)
        return f"{signed}.{text(b''.join(n.to_bytes(WIDTH, 'big') for n in numbers))}"

    def public_key(self) -> Json:
        """Return the key by which tokens are checked (JWK)."""
        numbers = self._key.public_key().public_numbers()
        x, y = (text(n.to_bytes(WIDTH, "big")) for n in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "kid": "one", "alg": "ES256", "x": x, "y": y}
