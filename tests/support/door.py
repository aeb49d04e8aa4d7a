"""A page of a pod through the console's door, as a browser reaches it, and as an attacker tries."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.apiserver import Answer
from tests.support.console import Visitor


@dataclass
class Opened:
    """A page of a pod that a visitor of the console has opened."""

    url: str
    """The link that lets a browser in once."""
    cookie: str = ""
    sent: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Return the name of the page's own origin, with its port."""
        return urlsplit(self.url).netloc

    def enter(self) -> Answer:
        """Follow the link and keep the cookie."""
        parts = urlsplit(self.url)
        answer = self.get(f"{parts.path}?{parts.query}")
        self.cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return answer

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
        """Send one request to the page's origin."""
        port = int(self.host.rpartition(":")[2])
        given = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {})}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, headers={**given, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()


def signed_in(link: str) -> Visitor:
    """Return a visitor who has followed a link of the command line."""
    parts = urlsplit(link)
    visitor = Visitor(link)
    code = parts.fragment.removeprefix("code=")
    answer = visitor.request("POST", "/api/session", {"code": code})
    assert answer.status == 200, answer.body
    return visitor


def opened(visitor: Visitor, **which: str | int) -> Opened:
    """Open a notebook or a port of a pod, and go in."""
    answer = visitor.request("POST", "/api/apps", which)
    assert answer.status == 200, answer.body
    page = Opened(answer.json["url"])
    assert page.enter().status == 200
    return page


def of_link(link: str) -> Opened:
    """Go where a link of `lockstep dev open` leads."""
    _, _, namespace, notebook = urlsplit(link).path.split("/")
    return opened(signed_in(link), namespace=namespace, notebook=notebook)
