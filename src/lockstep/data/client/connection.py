"""The line to a node's data cache: HTTP with the dataset's token."""

from __future__ import annotations

import errno
import http.client
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

ABOUT = ".lockstep"
"""A file in the root of a view, in no listing: where its cache is reached."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one version of a dataset is read."""

    address: str
    uid: str
    token: str
    version: str = "current"

    @classmethod
    def of_view(cls, root: str | os.PathLike[str]) -> Endpoint | None:
        """Return the endpoint of the view mounted at *root*.

        None for a dataset that is whole on the node, whose real files are mounted.
        """
        try:
            found = json.loads((Path(root) / ABOUT).read_bytes())
        except FileNotFoundError:
            return None
        return cls(found["address"], found["uid"], found["token"], found["version"])


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
        headers = {**headers, "authorization": f"Bearer {self.endpoint.token}"}
        for last in (False, True):
            line = getattr(self._lines, "line", None)
            if line is None:
                line = http.client.HTTPConnection(self.endpoint.address, timeout=self._timeout)
                self._lines.line = line
            try:
                line.request(method, place, body, headers)
                answer = line.getresponse()
                data = answer.read()
            except (http.client.HTTPException, OSError):
                self._lines.line = None
                if last:
                    raise
                continue
            if answer.status >= 400:
                code = int(answer.getheader("x-errno") or 0)
                code = code or (errno.ENOENT if answer.status == 404 else errno.EIO)
                raise OSError(code, data.decode(errors="replace"))
            return data
        raise AssertionError("unreachable")
