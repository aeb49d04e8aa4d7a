"""kill -9 at any time loses no acknowledged write, and doubles none."""

from __future__ import annotations

import http.client
import threading
import time

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync

ROUNDS = 4
WRITERS = 4
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Writer(threading.Thread):
    """Creates, changes and deletes its own objects until the server dies; keeps what was said."""

    def __init__(self, server: ApiServer, name: str) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._prefix = name
        self.acknowledged: dict[str, tuple[str, str] | None] = {}
        """By name: resource version and value that the last answer told, None when deleted."""
        self.uncertain: set[str] = set()
        """Objects of requests that were never answered: either outcome is right."""
        self.highest = 0

    def run(self) -> None:
        connection = self._server.connect()
        number = 0
        try:
            while True:
                number += 1
                self._write(connection, f"{self._prefix}-{number}", "created", "POST", CONFIG_MAPS)
                if number % 3 == 0:
                    self._change(connection, f"{self._prefix}-{number - 1}")
                if number % 5 == 0:
                    self._remove(connection, f"{self._prefix}-{number - 2}")
        except (OSError, http.client.HTTPException):
            connection.close()

    def _write(
        self, connection: http.client.HTTPSConnection, name: str, value: str, method: str, path: str
    ) -> None:
        body = {"metadata": {"name": name}, "data": {"value": value}}
        self.uncertain.add(name)
        answer = self._server.request(
            method,
            path,
            body,
            content_type="application/json" if method == "POST" else "application/merge-patch+json",
            connection=connection,
        )
        assert answer.status in (200, 201), answer.body
        version = answer.json["metadata"]["resourceVersion"]
        self.highest = max(self.highest, int(version))
        self.acknowledged[name] = (version, value)
        self.uncertain.discard(name)

    def _change(self, connection: http.client.HTTPSConnection, name: str) -> None:
        if self.acknowledged.get(name):
            self._write(connection, name, "changed", "PATCH", f"{CONFIG_MAPS}/{name}")

    def _remove(self, connection: http.client.HTTPSConnection, name: str) -> None:
        self.uncertain.add(name)
        answer = self._server.request("DELETE", f"{CONFIG_MAPS}/{name}", connection=connection)
        assert answer.status == 200, answer.body
        self.acknowledged[name] = None
        self.uncertain.discard(name)


def stored(server: ApiServer) -> dict[str, tuple[str, str]]:
    items = server.request("GET", CONFIG_MAPS).json["items"]
    return {
        item["metadata"]["name"]: (item["metadata"]["resourceVersion"], item["data"]["value"])
        for item in items
    }


def test_a_storm_of_writes_survives_kill_9(server: ApiServer) -> None:
    known: dict[str, tuple[str, str] | None] = {}
    for round_ in range(ROUNDS):
        writers = [Writer(server, f"r{round_}-w{number}") for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        target = 40 + 25 * round_
        eventually_sync(
            lambda writers=writers, target=target: (
                sum(len(w.acknowledged) for w in writers) > target
            ),
            what="enough acknowledged writes",
        )
        server.kill()
        for writer in writers:
            writer.join(10)
        began = time.monotonic()
        server.start()
        assert time.monotonic() - began < 5.0
        after = stored(server)
        uncertain: set[str] = set()
        for writer in writers:
            uncertain |= writer.uncertain
            known |= writer.acknowledged
        for name, value in known.items():
            if name not in uncertain:
                assert after.get(name) == value, name
        assert set(after) - {n for n, v in known.items() if v} <= uncertain
        # What came through without an answer is a fact from now on.
        known |= {name: after.get(name) for name in uncertain}
        fresh = server.request(
            "POST",
            CONFIG_MAPS,
            {"metadata": {"name": f"fresh-{round_}"}, "data": {"value": "created"}},
        )
        version = int(fresh.json["metadata"]["resourceVersion"])
        assert version > max(writer.highest for writer in writers)
        known[f"fresh-{round_}"] = (str(version), "created")
