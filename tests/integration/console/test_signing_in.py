"""OpenID Connect and the trusted proxy, as a browser goes through them."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.support.apiserver import ApiServer
from tests.support.console import Console, Visitor, apply
from tests.support.fake_issuer import CLIENT, SECRET, FakeIssuer
from tests.support.kube_apiserver import MORE_OPTIONS, KubeApiServer
from tests.support.waiting import stretched

PROXY = "X-Forwarded-User"


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[FakeIssuer]:
    running = FakeIssuer(tmp_path)
    yield running
    running.stop()


def served(issuer: FakeIssuer, server: ApiServer, directory: Path) -> Console:
    secret = directory / "secret"
    secret.write_text(f"{SECRET}\n")
    where = ("--oidc-issuer", issuer.url, "--oidc-ca", issuer.ca, "--oidc-client", CLIENT)
    options = (*where, "--oidc-secret-file", secret)
    return Console(server, directory / "state", *map(str, options))


@pytest.fixture
def console(issuer: FakeIssuer, shared_server: ApiServer, tmp_path: Path) -> Iterator[Console]:
    running = served(issuer, shared_server, tmp_path)
    yield running
    running.stop()


def begin(visitor: Visitor, issuer: FakeIssuer) -> dict[str, str]:
    """Go to the issuer and come back; return what the browser brings along."""
    to = visitor.request("GET", "/oidc/start")
    assert to.status == 303, to.body
    where = urlsplit(to.headers["Location"])
    assert where.netloc == issuer.netloc
    trust = ssl.create_default_context(cafile=str(issuer.ca))
    connection = http.client.HTTPSConnection(issuer.netloc, timeout=stretched(30), context=trust)
    connection.request("GET", f"{where.path}?{where.query}")
    back = urlsplit(connection.getresponse().headers["Location"])
    connection.close()
    assert (back.netloc, back.path) == (visitor.netloc, "/oidc/callback")
    return {key: values[0] for key, values in parse_qs(back.query).items()}


def finish(visitor: Visitor, brought: dict[str, str]) -> Any:
    return visitor.request("GET", f"/oidc/callback?{urlencode(brought)}")


def test_the_api_server_judges_the_token_the_console_gets(
    issuer: FakeIssuer, console: Console, shared_server: ApiServer
) -> None:
    """The embedded server trusts no issuer; one that did is played by its file of tokens."""
    visitor = Visitor(console.url)
    assert visitor.request("GET", "/api/session").json["error"]["ways"] == {"oidc": True}
    refused = finish(visitor, begin(visitor, issuer))
    assert refused.status == 403
    assert "does not accept" in refused.json["error"]["message"]
    (token,) = issuer.given
    tokens = shared_server.data / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f"{token},oidc:ana,uid-1\n")
    assert visitor.request("POST", "/api/session", {"token": token}).json["user"] == "oidc:ana"


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"claims": {"nonce": "of another"}}, "another sign-in"),
        ({"claims": {"aud": "another"}}, "another client"),
        ({"claims": {"iss": "https://evil.example"}}, "another issuer"),
        ({"about": {"token_endpoint": "http://evil.example/"}}, "names no token_endpoint"),
    ],
)
def test_what_is_not_of_this_sign_in_is_refused(
    issuer: FakeIssuer, console: Console, spoilt: dict[str, Any], says: str
) -> None:
    visitor = Visitor(console.url)
    brought = begin(visitor, issuer)
    issuer.spoilt = spoilt
    refused = finish(visitor, brought)
    assert refused.status == 403
    assert says in refused.json["error"]["message"]
    assert visitor.request("GET", "/api/session").status == 401


def test_a_sign_in_counts_once_and_in_its_own_browser(issuer: FakeIssuer, console: Console) -> None:
    visitor = Visitor(console.url)
    brought = begin(visitor, issuer)
    other = finish(Visitor(console.url), brought)
    assert (other.status, issuer.given) == (403, [])
    assert "another browser" in other.json["error"]["message"]
    guessed = finish(visitor, {**brought, "code": "guessed"})
    assert (guessed.status, issuer.given) == (403, [])
    again = finish(visitor, brought)
    assert "this sign-in is over" in again.json["error"]["message"]


@pytest.mark.soak
def test_a_real_api_server_checks_the_issuers_signature(
    issuer: FakeIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "issuer-url": issuer.url,
        "client-id": CLIENT,
        "ca-file": issuer.ca,
        "username-prefix": "oidc:",
        "groups-claim": "groups",
        "signing-algs": "ES256",
    }
    given = " ".join(f"--oidc-{name}={value}" for name, value in options.items())
    monkeypatch.setenv(MORE_OPTIONS, given)
    server = KubeApiServer(tmp_path / "kube")
    console = None
    try:
        server.start()
        console = served(issuer, server, tmp_path)
        visitor = Visitor(console.url)
        page = finish(visitor, begin(visitor, issuer))
        assert page.status == 200, page.body
        assert visitor.request("GET", "/api/session").json["user"] == "oidc:ana"
        assert visitor.cookie.startswith("lockstep-")
    finally:
        if console is not None:
            console.stop()
        server.kill()


def proxied(server: ApiServer, directory: Path, network: str) -> Console:
    rbac = "rbac.authorization.k8s.io"
    meta = {"name": "console-impersonates"}
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}
    apply(server, {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta,
                   "rules": [rule]})  # fmt: skip
    apply(server, {
        "apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **meta},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "lockstep:console"}],
    })  # fmt: skip
    return Console(server, directory / "state", "--proxy-header", PROXY, "--proxy", network)


def test_a_trusted_proxy_names_the_user(shared_server: ApiServer, tmp_path: Path) -> None:
    console = proxied(shared_server, tmp_path, "127.0.0.0/8")
    try:
        visitor = Visitor(console.url)
        about = visitor.request("GET", "/api/session", headers={PROXY: "ana"})
        assert (about.status, about.json["user"]) == (200, "ana")
        # Impersonated: the console's own rights are not the user's.
        refused = visitor.request("GET", "/api/objects/nodes/-/none")
        assert refused.status == 403
        assert '"ana" cannot get' in refused.json["error"]["message"]
        for name in ("", "system:admin", "a" * 300):
            stranger = Visitor(console.url)
            assert stranger.request("GET", "/api/session", headers={PROXY: name}).status == 401
    finally:
        console.stop()


def test_no_other_address_may_vouch(shared_server: ApiServer, tmp_path: Path) -> None:
    console = proxied(shared_server, tmp_path, "10.9.0.0/16")
    try:
        answer = Visitor(console.url).request("GET", "/api/session", headers={PROXY: "ana"})
        assert answer.status == 401
    finally:
        console.stop()
