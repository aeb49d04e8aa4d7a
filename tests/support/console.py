"""The console as a process, its API as a user's browser would call it, and a real browser."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.support import installed
from tests.support.apiserver import Answer, ApiServer
from tests.support.control_plane import LOCKSTEP
from tests.support.waiting import eventually_sync, stretched

from lockstep.api import crd
from lockstep.api.names import API_VERSION
from lockstep.console import links

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MARK = {"X-Lockstep-Console": "1", "Content-Type": "application/json"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE = 90_000
"""Milliseconds for which a page may take its time."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Console:
    """``lockstep console --serve`` with its own account; it ends with the test process."""

    def __init__(self, server: ApiServer, state: Path, *options: str) -> None:
        self.server, self.state = server, state
        command = (*LOCKSTEP, "console", "--serve", "--port", "0", "--leashed")
        where = ("--kubeconfig", str(account(server)), "--state", str(state))
        self.process = subprocess.Popen(
            (*command, *where, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready http"), line
        self.url = line.split()[1]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def code(self, kubeconfig: Path | None = None) -> str:
        """Return the code of a one-time link, for the administrator by default."""
        return links.write(self.state, links.Grant(str(kubeconfig or self.server.kubeconfig)))

    def link(self) -> str:
        return links.url(self.url, self.code())

    def visitor(self, **body: str) -> Visitor:
        """Return a visitor who has signed in with a token or a code."""
        visitor = Visitor(self.url)
        signed_in = visitor.request("POST", "/api/session", body)
        assert signed_in.status == 200, signed_in.body
        return visitor


class Visitor:
    """A browser as far as cookies and headers go."""

    def __init__(self, url: str) -> None:
        self.netloc = urlsplit(url).netloc
        self.cookie = ""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {**MARK, **({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        connection = http.client.HTTPConnection(self.netloc, timeout=stretched(60))
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()
        for given in response.headers.get_all("Set-Cookie", ()):
            self._keep(given.partition(";")[0])
        return answer

    def _keep(self, cookie: str) -> None:
        name, _, value = cookie.partition("=")
        held = dict(one.split("=", 1) for one in self.cookie.split("; ") if one)
        held[name] = value.strip('"')
        self.cookie = "; ".join(f"{key}={text}" for key, text in held.items() if text)

    def jobs(self, query: str = "") -> list[str]:
        """Return the jobs that it sees, as NAMESPACE/NAME."""
        answer = self.request("GET", f"/api/jobs?{query}")
        assert answer.status == 200, answer.body
        return [f"{row['namespace']}/{row['name']}" for row in answer.json["items"]]


def account(server: ApiServer) -> Path:
    """Return the kubeconfig of the console's own account; the kinds it reads are there."""
    _install_kinds(server)
    return server.data / "kubeconfigs" / "console.kubeconfig"


def _install_kinds(server: ApiServer) -> None:
    for manifest in crd.manifests():
        made = server.request("POST", CRDS, manifest)
        assert made.status in (201, 409), made.body
    eventually_sync(
        lambda: server.request("GET", f"/apis/{API_VERSION}/trainingjobs").status == 200,
        what="the kinds are served",
    )


def apply(server: ApiServer, obj: dict[str, Any]) -> None:
    """Make an object as it is given."""
    done = server.request(
        "PATCH",
        f"{installed.path(obj)}?fieldManager=test&force=true",
        json.dumps(obj).encode(),
        content_type="application/apply-patch+yaml",
    )
    assert done.status in (200, 201), done.body


def token(server: ApiServer, namespace: str, account: str) -> str:
    """Return a token of a service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    made = server.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    assert made.status == 201, made.body
    return str(made.json["status"]["token"])


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a real browser; skip where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is on PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=120_000
        )
        yield browser
        browser.close()


@contextmanager
def watched_page(browser: Browser) -> Iterator[Page]:
    """Give a page; its errors, what its policy forbids and foreign requests fail the test."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(locale="en-GB")
    context.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    hosts: set[str | None] = set()
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    context.on(
        "console",
        lambda said: wrong.append(said.text) if "Content Security" in said.text else None,
    )
    context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page = context.new_page()
    yield page
    context.close()
    assert not wrong
    assert hosts <= {"127.0.0.1"}
