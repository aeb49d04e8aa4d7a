"""The one door to pages of pods: what other pages, other users and old cookies get from it."""

from __future__ import annotations

import http.server
import random
import string
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import Error as PlaywrightError
from tests.support import hostile_page
from tests.support.apiserver import ApiServer
from tests.support.console import Visitor, apply, token
from tests.support.control_plane import ControlPlane
from tests.support.door import Opened, opened, signed_in
from tests.support.hostile_page import CANARY
from tests.support.kube_apiserver import free_ports
from tests.support.waiting import eventually_sync

websocket = pytest.importorskip("websocket", reason="needs websocket-client")

RBAC = "rbac.authorization.k8s.io"
OUT_WITHIN = 10.0
"""Seconds within which a member who is removed is out."""


@dataclass
class Door:
    """A console with a page of a pod behind it."""

    plane: ControlPlane
    port: int

    @property
    def api(self) -> ApiServer:
        return ApiServer(self.plane.data, int(self.plane.ready_line.split()[1].rpartition(":")[2]))

    @property
    def which(self) -> dict[str, str | int]:
        return {"namespace": "default", "pod": "page-worker-0", "port": self.port}

    def admin(self) -> Visitor:
        return signed_in(
            self.plane.ok("console", "--print", "--data", str(self.plane.data)).strip()
        )

    def member(self, name: str) -> Visitor:
        """Sign in an account that may open ports of pods in the namespace, and read logs."""
        meta = {"name": name, "namespace": "default"}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
        rules = [
            {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create", "get"]},
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        ]
        role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules}
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
        for obj in (account, role, binding):
            apply(self.api, obj)
        visitor = Visitor(self.address)
        held = token(self.api, "default", name)
        assert visitor.request("POST", "/api/session", {"token": held}).status == 200
        return visitor

    @property
    def address(self) -> str:
        return (self.plane.data / "console" / "address").read_text().strip()

    def remove(self, name: str) -> None:
        path = f"/apis/{RBAC}/v1/namespaces/default/rolebindings/{name}"
        assert self.api.request("DELETE", path).status == 200


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    plane = ControlPlane(tmp_path_factory.mktemp("up") / "data").start()
    (port,) = free_ports(1)
    script = str(Path(hostile_page.__file__))
    plane.ok("submit", "plain", "--name", "page", "--", sys.executable, script, str(port))
    plane.eventually_phase("page", "Running")
    made = Door(plane, port)
    page = opened(made.admin(), **made.which)
    eventually_sync(lambda: page.get("/seen").status == 200, 60, "the page answers")
    yield made
    plane.stop()


@pytest.fixture(scope="module")
def page(door: Door) -> Opened:
    return opened(door.admin(), **door.which)


def socket_to(page: Opened, **headers: str) -> websocket.WebSocket:
    port = page.host.rpartition(":")[2]
    given = [f"{name}: {text}" for name, text in headers.items()]
    return websocket.create_connection(
        f"ws://127.0.0.1:{port}/ws",
        header=[*given, f"Cookie: {page.cookie}"],
        host=page.host,
        timeout=30,
        suppress_origin=True,
    )


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://other-page.apps.localhost:7490"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    {"Sec-Fetch-Site": "SAME-ORIGIN"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_request_of_another_page_does_not_reach_the_pod(
    page: Opened, method: str, headers: dict[str, str]
) -> None:
    before = page.get("/seen").json
    answer = page.get("/do", headers, method)
    assert (answer.status, CANARY.encode() in answer.body) == (403, False)
    assert page.get("/seen").json == before


@pytest.mark.parametrize("origin", ["", "http://evil.example", "null", "http://127.0.0.1:1"])
def test_socket_of_another_page_is_refused(page: Opened, origin: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        socket_to(page, **({"Origin": origin} if origin else {}))
    assert "SOCKET" not in page.get("/seen").json


def test_answers_of_the_pod_open_nothing_to_others(page: Opened) -> None:
    told = page.get("/any", {"Origin": f"http://{page.host}"})
    assert told.status == 200
    assert not [name for name in told.headers if name.lower().startswith("access-control")]
    assert told.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert told.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert told.headers["Set-Cookie"] == "mine=1; Path=/"


def test_pod_gets_no_cookie_of_the_door(page: Opened) -> None:
    came = page.get("/headers", {"Cookie": f"{page.cookie}; theirs=2; lockstep-7490=x"}).json
    text = str(came)
    assert (page.cookie.partition("=")[2] in text, "lockstep-" in text) == (False, False)
    assert ["Cookie", "theirs=2"] in came


def test_second_cookie_of_a_sibling_does_not_lock_out(page: Opened) -> None:
    for cookies in (f"lockstep-app=forged; {page.cookie}", f"{page.cookie}; lockstep-app=forged"):
        assert page.get("/any", {"Cookie": cookies}).status == 200


def test_cookie_of_another_user_opens_nothing(door: Door, page: Opened) -> None:
    other = opened(door.member("other"), **door.which)
    assert other.get("/any").status == 200
    assert other.host != page.host
    mine = page.cookie
    assert page.get("/any", {"Cookie": other.cookie}).status == 403
    assert other.get("/any", {"Cookie": mine}).status == 403
    assert page.get("/any", {"Cookie": ""}).status == 403


def test_cookie_is_worth_nothing_after_signing_out(door: Door) -> None:
    visitor = door.member("leaver")
    left = opened(visitor, **door.which)
    open_socket = socket_to(left, Origin=f"http://{left.host}")
    assert visitor.request("DELETE", "/api/session").status == 200
    ended(open_socket, time.monotonic())
    assert left.get("/any").status in (403, 404)


def ended(open_socket: websocket.WebSocket, since: float) -> None:
    """Require that a WebSocket is cut off in time, while it is used all the time."""
    open_socket.settimeout(OUT_WITHIN)
    try:
        while time.monotonic() - since < OUT_WITHIN:
            open_socket.send("x")
            assert open_socket.recv() in ("echo x", "")
            if not open_socket.connected:
                return
    except (websocket.WebSocketException, OSError):
        assert time.monotonic() - since < OUT_WITHIN
        return
    pytest.fail(f"the socket is open after {OUT_WITHIN} s")


def test_removed_member_is_out_everywhere_in_ten_seconds(door: Door) -> None:
    visitor = door.member("gone")
    theirs = opened(visitor, **door.which)
    open_socket = socket_to(theirs, Origin=f"http://{theirs.host}")
    open_socket.send("x")
    assert open_socket.recv() == "echo x"
    since = time.monotonic()
    door.remove("gone")
    ended(open_socket, since)
    left = OUT_WITHIN - (time.monotonic() - since)
    eventually_sync(lambda: theirs.get("/any").status == 403, left, "the page is refused")
    refused = visitor.request("POST", "/api/apps", door.which)
    assert refused.status == 403
    assert CANARY.encode() not in refused.body


def test_fuzzed_requests_are_refused_or_reach_the_pod_unchanged(page: Opened) -> None:
    draw = random.Random(7)  # noqa: S311 - drawn cases, no secret
    names = ["Host", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie", "Upgrade",
             "Connection", "X-Forwarded-Host", "Transfer-Encoding", "Content-Length"]  # fmt: skip
    values = [page.host, page.host.upper(), f"x.{page.host}", f"{page.host}.evil.example", "", "*",
              "null", f"http://{page.host}", f"http://{page.host}@evil", "navigate", "none",
              "same-origin", "websocket", "keep-alive, Host", "close"]  # fmt: skip
    for _ in range(300):
        chosen = {draw.choice(names): draw.choice(values) for _ in range(draw.randint(1, 3))}
        noise = "".join(draw.choices(string.ascii_letters, k=6))
        given = {**chosen, f"X-{noise}": noise}
        own = chosen.get("Cookie") is None and chosen.get("Host", page.host) == page.host
        try:
            answer = page.get(f"/{noise}", given)
        except OSError:
            continue
        assert answer.status < 500 or "Upgrade" in chosen, (given, answer.body)
        let_in = CANARY.encode() in answer.body
        foreign = chosen.get("Origin", f"http://{page.host}") != f"http://{page.host}"
        assert not let_in or (own and not foreign), given


ATTACKS = """async ([origin, host]) => {
  const told = {};
  const ask = (name, way) => fetch(origin + name, way).then(async (a) => [a.type, a.status,
    await a.text().catch(() => '')]).catch((e) => ['failed', 0, String(e)]);
  told.read = await ask('/attack-read', {credentials: 'include'});
  told.post = await ask('/attack-post', {method: 'POST', mode: 'no-cors', credentials: 'include',
    body: 'x'});
  told.put = await ask('/attack-put', {method: 'PUT', credentials: 'include'});
  told.socket = await new Promise((done) => {
    const s = new WebSocket(`ws://${host}/ws`);
    s.onopen = () => done('open'); s.onerror = () => done('refused');
  });
  told.frame = await new Promise((done) => {
    const f = document.createElement('iframe');
    f.src = origin + '/attack-frame';
    f.onload = () => { let text = 'closed'; try { text = f.contentDocument.body.innerText; }
      catch (e) { text = 'closed'; } done(text); };
    document.body.append(f); setTimeout(() => done('never'), 5000);
  });
  const form = document.createElement('form');
  form.method = 'POST'; form.action = origin + '/attack-form'; form.target = '_blank';
  document.body.append(form); form.submit();
  return told;
}"""


@pytest.fixture
def attacker() -> Iterator[int]:
    """A web server of another user of the machine; returns its port."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><body>evil")

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


@pytest.mark.parametrize(
    "where", ["127.0.0.1", "localhost", "evil.apps.localhost", "apps.localhost", "sibling"]
)
def test_page_in_a_browser_cannot_use_an_open_one(
    door: Door, browser: Browser, attacker: int, where: str
) -> None:
    context = browser.new_context()
    try:
        tab: Page = context.new_page()
        tab.goto(door.plane.ok("console", "--print", "--data", str(door.plane.data)).strip())
        tab.get_by_role("button", name="Sign out").wait_for()
        url = opened_by(tab, door)
        tab.goto(url)
        tab.locator("#c").wait_for()
        origin = tab.url.rstrip("/")
        host = origin.removeprefix("http://")
        assert tab.evaluate("() => fetch('/own').then((a) => a.status)") == 200
        other = context.new_page()
        if where == "sibling":
            # Script in a page of the same user's other notebook.
            (port,) = free_ports(1)
            script = str(Path(hostile_page.__file__))
            name = "sibling"
            door.plane.ok(
                "submit", "plain", "--name", name, "--", sys.executable, script, str(port)
            )
            door.plane.eventually_phase(name, "Running")
            tab.goto(door.address)
            tab.get_by_role("button", name="Sign out").wait_for()
            there = opened_by(tab, door, f"{name}-worker-0", port)
            tab.goto(origin)
            other.goto(there)
            home = there.partition("/.lockstep")[0]
            eventually_sync(lambda: status_of(other, home) == 200, 60, "the sibling answers")
        else:
            other.goto(f"http://{where}:{attacker}/")
        before = tab.evaluate("() => fetch('/seen').then((a) => a.json())").count("SOCKET")
        told = other.evaluate(ATTACKS, [origin, host])
        assert (told["socket"], told["frame"] in ("closed", "never")) == ("refused", True), told
        assert CANARY not in str(told)
        tab.goto(origin)
        seen = tab.evaluate("() => fetch('/seen').then((a) => a.json())")
        assert [one for one in seen if "attack" in one] == []
        assert seen.count("SOCKET") == before
    finally:
        context.close()


def status_of(tab: Page, url: str) -> int:
    """Return the status of a page that may still be on its way elsewhere; 0 where it is."""
    try:
        answer = tab.goto(url, wait_until="load")
    except PlaywrightError:
        return 0
    return answer.status if answer is not None else 0


def opened_by(tab: Page, door: Door, pod: str = "page-worker-0", port: int = 0) -> str:
    asked = """async (which) => (await (await fetch('/api/apps', {method: 'POST',
      headers: {'X-Lockstep-Console': '1'}, body: JSON.stringify(which)})).json()).url"""
    which = {"namespace": "default", "pod": pod, "port": port or door.port}
    return str(tab.evaluate(asked, which))
