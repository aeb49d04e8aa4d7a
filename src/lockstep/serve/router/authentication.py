"""Authenticates clients by bearer tokens; each token names the namespaces it may reach."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

Headers = Iterable[tuple[bytes, bytes]]

_SHORTEST: Final = 16


class BadTokens(ValueError):
    """A file of tokens that cannot be used: which line, and why."""


class TokenAuthenticator:
    """Lets requests in whose token stands in a file; the file may change meanwhile.

    A line is a token, and after a space the namespaces it is for, separated by commas; none are
    all of them. Lines that begin with ``#`` are left out. Digests alone are kept.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp = (0, 0)
        self._known: Mapping[bytes, frozenset[str]] = {}
        self.read()

    def read(self) -> bool:
        """Read the file if it changed; return whether it did.

        Raises:
            BadTokens: when it cannot be read or a line is malformed; the tokens before still hold.
        """
        try:
            about = self._file.stat()
            stamp = (about.st_mtime_ns, about.st_size)
            if stamp == self._stamp:
                return False
            text = self._file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise BadTokens(f"--tokens {self._file}: {error}") from error
        known: dict[bytes, frozenset[str]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            token, _, rest = line.strip().partition(" ")
            if not token or token.startswith("#"):
                continue
            if len(token) < _SHORTEST:
                what = f"a token has at least {_SHORTEST} characters"
                raise BadTokens(f"--tokens {self._file}: line {number}: {what}")
            spaces = frozenset(one.strip() for one in rest.split(",") if one.strip())
            known[_digest(token.encode())] = spaces
        self._known, self._stamp = known, stamp
        return True

    def allowed_namespaces(self, headers: Headers) -> frozenset[str] | None:
        """Return the namespaces that a request may reach, empty for all; None for no request.

        Digests are compared: how long that takes says nothing of the token.
        """
        stated = [value for name, value in headers if name.lower() == b"authorization"]
        if len(stated) != 1:
            return None
        kind, _, token = stated[0].strip().partition(b" ")
        if kind.lower() != b"bearer":
            return None
        return self._known.get(_digest(token.strip()))


def within(key: str, namespaces: frozenset[str]) -> bool:
    """Return whether the service ``NAMESPACE/NAME`` is one that *namespaces* allow."""
    return not namespaces or key.partition("/")[0] in namespaces


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
