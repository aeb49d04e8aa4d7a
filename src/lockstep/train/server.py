"""The API server, as far as a launcher uses it: follow one ConfigMap, renew one Lease."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from lockstep.train.place import Place
from lockstep.train.state import Json

TIMEOUT = 10.0
"""Seconds for a request; a watch is asked to end before it is taken for dead."""
WATCH_SECONDS = 40
RETRY = 0.5
LONGEST_RETRY = 5.0
REPORT = "lockstep.dev/report"


class Refused(Exception):
    """The server answered, and not with what was asked for."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Server:
    """Requests to the API server, each on a connection of its own or on one that is kept."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._kept: http.client.HTTPSConnection | None = None

    def world(self) -> Json:
        """Return the ConfigMap with the world.

        Raises:
            Refused, OSError, http.client.HTTPException: when it cannot be had now.
        """
        return self._ask("GET", f"{self._maps()}/{quote(self.place.world)}")

    def follow(self, version: str) -> Iterator[Json]:
        """Yield the ConfigMap as it changes after *version*, until the watch ends.

        Raises:
            Refused, OSError, http.client.HTTPException: when the watch breaks.
        """
        query = (
            f"watch=1&fieldSelector=metadata.name%3D{quote(self.place.world)}"
            f"&resourceVersion={quote(version)}&timeoutSeconds={WATCH_SECONDS}"
        )
        connection = self._connect(WATCH_SECONDS + TIMEOUT)
        try:
            connection.request("GET", f"{self._maps()}?{query}", headers=self._headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise Refused(answer.status, answer.read().decode(errors="replace")[:200])
            while True:
                line = answer.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(410, str(event["object"].get("message", "")))
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]
        finally:
            connection.close()

    def report(self, report: Json) -> None:
        """Write *report* into the launcher's Lease, and renew that.

        Raises:
            Refused, OSError, http.client.HTTPException: when it cannot be written now.
        """
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
        body = {
            "metadata": {"annotations": {REPORT: json.dumps(report, separators=(",", ":"))}},
            "spec": {"holderIdentity": self.place.uid, "renewTime": stamp},
        }
        space, pod = quote(self.place.namespace), quote(self.place.pod)
        path = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{pod}"
        self._ask("PATCH", path, body)

    def _maps(self) -> str:
        return f"/api/v1/namespaces/{quote(self.place.namespace)}/configmaps"

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers()
        if data is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        status, text = self._exchange(method, path, data, headers)
        if status >= 300:
            raise Refused(status, text.decode(errors="replace")[:200])
        found: Json = json.loads(text)
        return found

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        fresh = self._kept is None
        connection = self._kept = self._kept or self._connect(TIMEOUT)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            if fresh:
                raise
        # The server may have closed the connection that was kept: once more on a new one.
        return self._exchange(method, path, data, headers)

    def close(self) -> None:
        """Close the connection that is kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.place.server, timeout=timeout, context=_trust(self.place.account)
        )

    def _headers(self) -> dict[str, str]:
        # Read anew each time: the node renews it.
        token = (self.place.account / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}", "Accept": "application/json"}


def _trust(account: Path) -> ssl.SSLContext:
    authority = account / "ca.crt"
    return ssl.create_default_context(cafile=str(authority) if authority.is_file() else None)


def keep_following(server: Server, tell: Callable[[Json], None], stop: Callable[[], bool]) -> None:
    """Call *tell* with each world, for as long as not *stop*; the server may be away at times."""
    delay = RETRY
    while not stop():
        try:
            there = server.world()
            tell(there)
            delay = RETRY
            version = there["metadata"]["resourceVersion"]
            while not stop():
                for changed in server.follow(version):
                    version = changed["metadata"]["resourceVersion"]
                    tell(changed)
        except (OSError, http.client.HTTPException, Refused, ValueError, KeyError):
            time.sleep(delay)
            delay = min(LONGEST_RETRY, delay * 1.5)
