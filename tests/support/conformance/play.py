"""Asking one server the whole script."""

from __future__ import annotations

import http.client
import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.apiserver import Answer, ApiServer
from tests.support.conformance.normal import Normal, differences
from tests.support.conformance.script.ask import Ask
from tests.support.waiting import eventually_sync

Json = Any

PATIENCE = 30.0
_REFERENCE = re.compile(r"\$\{([^:}]+):([^}]+)\}")


@dataclass
class Player:
    """Asks one server, and keeps what it says for later requests to refer to."""

    server: ApiServer
    said: dict[str, Json] = field(default_factory=dict)
    heard: dict[str, Json] = field(default_factory=dict)
    """The answers in a form that two servers can share, by the name of the request."""
    _normal: Normal = field(init=False)

    def __post_init__(self) -> None:
        self._normal = Normal(f"127.0.0.1:{self.server.port}")

    def play(self, script: tuple[Ask, ...]) -> dict[str, Json]:
        """Ask everything in order and return what was heard."""
        for ask in script:
            self.ask(ask)
        return self.heard

    def ask(self, ask: Ask) -> None:
        """Send one request, again and again where it waits for something."""
        if ask.until is None:
            answer = self._send(ask)
        else:
            last: list[Answer] = []

            def comes_true() -> bool:
                last[:] = [self._send(ask)]
                return bool(ask.until and ask.until(last[0]))

            # The last answer is compared in any case, and tells what did not come.
            with suppress(AssertionError):
                eventually_sync(comes_true, PATIENCE)
            answer = last[0]
        self._keep(ask, answer)

    def _keep(self, ask: Ask, answer: Answer) -> None:
        try:
            self.said[ask.name] = json.loads(answer.body)
        except ValueError:
            self.said[ask.name] = {}
        assert ask.name not in self.heard, f"two requests are called {ask.name!r}"
        self.heard[ask.name] = self._normal.answer(answer, watched=is_watch(ask))

    def _send(self, ask: Ask) -> Answer:
        connection = self.server.connect(certificate=not ask.anonymous)
        try:
            body = self._fill(ask.body)
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            headers = dict(self._fill(ask.headers))
            if data is not None:
                headers.setdefault("Content-Type", ask.content_type)
            connection.request(ask.method, self._fill(ask.path), data, headers)
            response = connection.getresponse()
            for other in ask.during:
                self.ask(other)
            try:
                read = response.read()
            except http.client.IncompleteRead as cut:
                read = cut.partial + b"(cut off)"
            return Answer(response.status, dict(response.headers), read)
        finally:
            connection.close()

    def _fill(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {key: self._fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._fill(one) for one in value]
        if isinstance(value, str):
            return _REFERENCE.sub(lambda found: str(self._said(found[1], found[2])), value)
        return value

    def _said(self, name: str, path: str) -> Json:
        value = self.said.get(name, {})
        for key in path.split("."):
            value = value.get(key, "") if isinstance(value, dict) else ""
        return value


def is_watch(ask: Ask) -> bool:
    """Whether a request's answer is a stream of events."""
    url = urlsplit(ask.path)
    return parse_qs(url.query).get("watch", ["false"])[0] in ("true", "1", "yes") or (
        "/watch/" in url.path
    )


def compare(script: tuple[Ask, ...], ours: ApiServer, theirs: ApiServer) -> dict[str, list[str]]:
    """Ask both servers the script and return the differences of each request by its name."""
    players = Player(ours), Player(theirs)
    with ThreadPoolExecutor(2) as pool:
        heard, reference = pool.map(lambda player: player.play(script), players)
    return {name: differences(heard[name], reference[name]) for name in heard}
