"""Tokens of service accounts: signed by the server (JWT, ES256), for an audience and a time."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lockstep.api.wire import Json
from lockstep.apiserver.auth.identity import User, service_account

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec


ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
MIN_LIFETIME: Final = 600
DEFAULT_LIFETIME: Final = 3600
_COORDINATE: Final = 32
_MAX_REMEMBERED: Final = 4096
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"

StillThere = Callable[[str, str, str, str], bool]
"""Whether the object of this plural, namespace and name is there and still has this uid."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """The service account that a token is for, and the pod that it is bound to, if it is."""

    namespace: str
    name: str
    uid: str
    pod_name: str = ""
    pod_uid: str = ""


class TokenSigner:
    """Issues and verifies tokens with the server's own key.

    The digests of tokens whose signatures were found good are remembered, so that a client's every
    request does not cost a verification and no token lies in memory; times, audiences and bound
    objects are checked each time.
    """

    def __init__(self, key: Path, *, issuer: str = ISSUER, still_there: StillThere) -> None:
        self._path = key
        self._issuer = issuer
        self._still_there = still_there
        self._key: ec.EllipticCurvePrivateKey | None = None
        self._verified: dict[bytes, Json] = {}

    def issue(
        self, bearer: Bearer, *, now: float, lifetime: int, audiences: Sequence[str] = ()
    ) -> str:
        """Return a token that is valid from now on for so many seconds."""
        account: Json = {"name": bearer.name, "uid": bearer.uid}
        private: Json = {"namespace": bearer.namespace, "serviceaccount": account}
        if bearer.pod_name:
            private["pod"] = {"name": bearer.pod_name, "uid": bearer.pod_uid}
        claims = {
            "aud": list(audiences) or [self._issuer],
            "exp": int(now) + lifetime,
            "iat": int(now),
            "nbf": int(now),
            "iss": self._issuer,
            "jti": str(uuid.uuid4()),
            "sub": f"system:serviceaccount:{bearer.namespace}:{bearer.name}",
            "kubernetes.io": private,
        }
        header = {"alg": "ES256", "typ": "JWT"}
        signed = f"{_encode(json.dumps(header).encode())}.{_encode(json.dumps(claims).encode())}"
        return f"{signed}.{_encode(self._sign(signed.encode()))}"

    def verify(self, token: str, *, now: float, audiences: Sequence[str] = ()) -> User | None:
        """Return whose token this is; nothing unless it is genuine, current and meant for us."""
        claims = self._genuine(token)
        if claims is None:
            return None
        wanted = set(audiences) or {self._issuer}
        if claims["iss"] != self._issuer or not wanted & set(claims["aud"]):
            return None
        if not claims["nbf"] <= now < claims["exp"]:
            return None
        return self._bearer(claims)

    def _bearer(self, claims: Json) -> User | None:
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        if not self._still_there("serviceaccounts", namespace, account["name"], account["uid"]):
            return None
        extra = {_CREDENTIAL: [f"JTI={claims['jti']}"]}
        if pod := private.get("pod"):
            if not self._still_there("pods", namespace, pod["name"], pod["uid"]):
                return None
            extra |= {_POD_NAME: [pod["name"]], _POD_UID: [pod["uid"]]}
        return service_account(namespace, account["name"], uid=account["uid"], extra=extra)

    def _genuine(self, token: str) -> Json | None:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._verified.get(digest)
        if known is not None:
            return known
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            header = json.loads(_decode(parts[0]))
            signature = _decode(parts[2])
            # The algorithm is ours to choose: a token that names another one is not ours.
            if header.get("alg") != "ES256" or not self._is_signed(
                f"{parts[0]}.{parts[1]}".encode(), signature
            ):
                return None
            claims: Json = json.loads(_decode(parts[1]))
        except (ValueError, AttributeError):
            return None
        if len(self._verified) >= _MAX_REMEMBERED:
            self._verified.clear()
        self._verified[digest] = claims
        return claims

    def _sign(self, content: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        signature = self._load().sign(content, ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(signature)
        return r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")

    def _is_signed(self, content: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        if len(signature) != 2 * _COORDINATE:
            return False
        r = int.from_bytes(signature[:_COORDINATE], "big")
        s = int.from_bytes(signature[_COORDINATE:], "big")
        encoded = utils.encode_dss_signature(r, s)
        try:
            self._load().public_key().verify(encoded, content, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def _load(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric import ec

            key = serialization.load_pem_private_key(self._path.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{self._path} is not an EC key")
            self._key = key
        return self._key


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
