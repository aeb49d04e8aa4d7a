"""HTTP to pods and services through the API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import free_ports
from tests.support.process_node import ProcessNode, pod
from tests.support.waiting import eventually_sync

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
# Answers with what it was asked, and of /moved with a redirection.
SERVER = """
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get('content-length') or 0))
        self.send_response(302 if self.path == '/moved' else 200)
        self.send_header('Location', '/there')
        self.end_headers()
        secret = self.headers.get('authorization') or 'none'
        text = f'{self.command} {self.path} {body.decode()} {secret}'
        if self.command != 'HEAD': self.wfile.write(text.encode())
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer
    def log_message(self, *_): pass
http.server.HTTPServer(('', %d), Echo).serve_forever()
"""


@pytest.fixture(scope="module")
def echo(node: ProcessNode) -> Iterator[tuple[ApiServer, int]]:
    """A pod ``echo`` behind a service of its name, and its port."""
    server = node.server
    (port,) = free_ports(1)
    made = pod("echo", ["python3", "-c", SERVER % port])
    made["metadata"]["labels"] = {"app": "echo"}
    made["spec"]["containers"][0]["ports"] = [{"containerPort": port, "name": "web"}]
    assert server.request("POST", PODS, made).status == 201
    ports = [{"port": 80, "name": "http", "targetPort": "web"}]
    service = {
        "metadata": {"name": "echo"},
        "spec": {"selector": {"app": "echo"}, "ports": ports},
    }
    assert server.request("POST", SERVICES, service).status == 201
    eventually_sync(
        lambda: server.request("GET", f"{PODS}/echo:{port}/proxy/").status == 200,
        what="the pod answers",
    )
    yield server, port


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", f"{PODS}/echo/proxy", "GET /  none"),
        ("GET", f"{PODS}/echo:PORT/proxy/a/b?c=d&e", "GET /a/b?c=d&e  none"),
        ("GET", f"{PODS}/http:echo:PORT/proxy/a//b/", "GET /a//b/  none"),
        ("GET", f"{PODS}/echo/proxy/a%20b/proxy/c", "GET /a%20b/proxy/c  none"),
        ("POST", f"{PODS}/echo/proxy/x", "POST /x {} none"),
        ("GET", f"{SERVICES}/echo/proxy/x", "GET /x  none"),
        ("PUT", f"{SERVICES}/echo:http/proxy/x", "PUT /x {} none"),
        ("DELETE", f"{SERVICES}/echo:80/proxy/x", "DELETE /x  none"),
        ("HEAD", f"{SERVICES}/echo:80/proxy/x", ""),
    ],
)
def test_requests_are_passed_on(
    echo: tuple[ApiServer, int], method: str, path: str, said: str
) -> None:
    server, port = echo
    body = {} if method in ("POST", "PUT") else None
    headers = {"Accept": "text/html", "Authorization": ""}
    answer = server.request(method, path.replace("PORT", str(port)), body, headers=headers)
    assert (answer.status, answer.body.decode()) == (200, said)


def test_a_redirection_stays_behind_the_proxy(echo: tuple[ApiServer, int]) -> None:
    answer = echo[0].request("GET", f"{PODS}/echo/proxy/moved")
    assert answer.status == 302
    assert answer.headers["Location"] == f"{PODS}/echo/proxy/there"


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        (f"{PODS}/nobody/proxy/", 404, '"nobody" not found'),
        (f"{SERVICES}/echo:other/proxy/", 503, 'no service port "other" found'),
        (f"{PODS}/echo:0/proxy/", 400, "is no port"),
        (f"{PODS}/ftp:echo:1/proxy/", 400, "it is NAME, NAME:PORT or http:NAME:PORT"),
        (f"{PODS}/echo:1/proxy/", 503, "error trying to reach service"),
    ],
)
def test_what_cannot_be_reached_is_told(
    echo: tuple[ApiServer, int], path: str, code: int, said: str
) -> None:
    answer = echo[0].request("GET", path)
    assert answer.status == code
    assert said in answer.json["message"]


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"])
def test_addresses_that_no_pod_has_are_not_reached(
    echo: tuple[ApiServer, int], address: str
) -> None:
    server, _ = echo
    name = "liar-" + address.replace(".", "-").replace(":", "x")
    liar: dict[str, Any] = pod(name, "true")
    liar["spec"]["schedulerName"] = "none"
    liar["spec"].pop("nodeName", None)
    assert server.request("POST", PODS, liar).status == 201
    told = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
    patched = server.request(
        "PATCH", f"{PODS}/{name}/status", told, content_type="application/merge-patch+json"
    )
    assert patched.status == 200
    answer = server.request("GET", f"{PODS}/{name}:80/proxy/")
    assert (answer.status, "no address that can be reached" in answer.json["message"]) == (
        400,
        True,
    )
