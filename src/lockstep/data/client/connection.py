"""The line to a node's data cache: HTTP with the dataset's token."""

from __future__ import annotations

import errno
import hashlib
import hmac
import http.client
import json
import os
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

CONNECT_WITHIN = 2.0
"""Seconds after which a cache that does not take a connection counts as gone."""
ABOUT = ".lockstep"
"""A file in the root of a view, in no listing: where its cache is reached."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one version of a dataset is read."""

    address: str
    uid: str
    token: str
    version: str = "current"
    certificate: str = ""
    """SHA-256 of the certificate that the cache shows; empty where it speaks no TLS."""

    @classmethod
    def of_view(cls, root: str | os.PathLike[str]) -> Endpoint | None:
        """Return the endpoint of the view mounted at *root*.

        None for a dataset that is whole on the node, whose real files are mounted.
        """
        try:
            found = json.loads((Path(root) / ABOUT).read_bytes())
        except FileNotFoundError:
            return None
        return cls(
            found["address"],
            found["uid"],
            found["token"],
            found["version"],
            found.get("certificate", ""),
        )


class Connection:
    """Requests to one endpoint; usable from several threads, each with a connection of its own."""

    def __init__(self, endpoint: Endpoint, timeout: float = 120.0) -> None:
        self.endpoint, self._timeout = endpoint, timeout
        self._lines = threading.local()

    def get(self, what: str, path: str, span: tuple[int, int] | None = None) -> bytes:
        """Return the answer for *path*, of the bytes *span* where given.

        Raises:
            OSError: with the number that a file system would give.
        """
        headers = {"range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}
        return self._ask("GET", f"{what}/{quote(path)}", None, headers)

    def post(self, what: str, body: Any) -> Any:
        """Send *body* as JSON, and return the answer.

        Raises:
            OSError: when it is refused.
        """
        return json.loads(self._ask("POST", what, json.dumps(body).encode(), {}))

    def _ask(self, method: str, what: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        place = f"/v1/{self.endpoint.uid}/{self.endpoint.version}/{what}"
        answer, data = self.request(method, place, body, headers)
        if answer.status >= 400:
            code = int(answer.getheader("x-errno") or 0)
            code = code or (errno.ENOENT if answer.status == 404 else errno.EIO)
            raise OSError(code, data.decode(errors="replace"))
        return data

    def request(
        self, method: str, place: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Return the answer to a request, of any status, and its body.

        Raises:
            OSError: when the cache cannot be reached, or shows another certificate.
            http.client.HTTPException: when it does not speak HTTP.
        """
        headers = {**headers, "authorization": f"Bearer {self.endpoint.token}"}
        for last in (False, True):
            line: Any = getattr(self._lines, "line", None) or _line(self.endpoint)
            try:
                if not line.sock:
                    line.connect()
                    line.sock.settimeout(self._timeout)
                    self._lines.line = line
                line.request(method, place, body, headers)
                answer = line.getresponse()
                return answer, answer.read()
            except (http.client.HTTPException, OSError):
                line.close()
                self._lines.line = None
                if last:
                    raise
        raise AssertionError("unreachable")


class OtherCertificate(OSError):
    """A cache shows a certificate that is not the one its node has told the cluster of."""


class _PinnedConnection(http.client.HTTPSConnection):
    """A connection over TLS to the one that has a certain certificate."""

    def __init__(self, address: str, certificate: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # its digest is looked at instead
        super().__init__(address, timeout=CONNECT_WITHIN, context=context)
        self._certificate = certificate

    def connect(self) -> None:
        """Connect; nothing is said, not even the token, to another one."""
        super().connect()
        shown = self.sock.getpeercert(binary_form=True) or b""
        if not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self._certificate):
            self.close()
            raise OtherCertificate(f"{self.host}:{self.port} shows another certificate")


def _line(endpoint: Endpoint) -> http.client.HTTPConnection:
    if endpoint.certificate:
        return _PinnedConnection(endpoint.address, endpoint.certificate)
    return http.client.HTTPConnection(endpoint.address, timeout=CONNECT_WITHIN)
