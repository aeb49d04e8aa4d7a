"""From a request's credentials to its user."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from lockstep.apiserver.auth.identity import ANONYMOUS, User, from_certificate
from lockstep.apiserver.auth.service_accounts import TokenSigner
from lockstep.apiserver.auth.tokens import TokenFile
from lockstep.apiserver.status import unauthorized

logger = logging.getLogger(__name__)

# A monitor that probes the server needs no account.
_OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})


class Authenticator:
    """Finds out who makes a request: by certificate, else by token, else anonymous."""

    def __init__(self, tokens: TokenFile, signer: TokenSigner) -> None:
        self._tokens = tokens
        self._signer = signer

    def identify(
        self,
        certificate: Mapping[str, Any] | None,
        authorization: str | None,
        path: str,
        now: float,
    ) -> User:
        """Return who makes a request.

        Args:
            certificate: The verified client certificate, as ``getpeercert`` returns it.
            authorization: The ``Authorization`` header.
            path: The path that is asked for.
            now: The present, as Unix time.

        Raises:
            StatusError: A credential is wrong, or there is none and the path needs one (401).
        """
        user = from_certificate(certificate)
        if user is not None:
            return user
        if authorization is not None:
            user = self.bearer(authorization, now)
            if user is not None:
                return user
        elif path in _OPEN_PATHS:
            return ANONYMOUS
        raise unauthorized()

    def bearer(self, authorization: str, now: float) -> User | None:
        """Return the user of a ``Bearer`` header; None where there is no such user."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        return self._listed(token) or self._signer.verify(token, now=now)

    def _listed(self, token: str) -> User | None:
        try:
            return self._tokens.find(token)
        except (OSError, ValueError) as error:
            # The client is not authenticated yet, and must not learn about our files.
            logger.error("no token of the file is accepted: %s", error)
            return None
