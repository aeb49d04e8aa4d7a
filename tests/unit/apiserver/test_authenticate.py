"""Credentials lead to users: certificates, tokens from a file, service-account tokens, none."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.auth.authenticate import Authenticator
from lockstep.apiserver.auth.identity import (
    User,
    authenticated,
    from_certificate,
    service_account,
    split_service_account,
)
from lockstep.apiserver.auth.service_accounts import Bearer, TokenSigner
from lockstep.apiserver.auth.tokens import TokenFile
from lockstep.apiserver.status import StatusError
from lockstep.keys.authority import new_key

NOW = 1_800_000_000.0
BUILDER = Bearer("ci", "builder", "uid-1")
AUTHENTICATED = "system:authenticated"


@pytest.mark.parametrize(
    ("certificate", "user"),
    [
        (None, None),
        ({}, None),
        ({"subject": ((("organizationName", "dev"),),)}, None),
        ({"subject": ((("commonName", "jane"),),)}, authenticated("jane")),
        (
            {
                "subject": (
                    (("organizationName", "dev"),),
                    (("organizationName", "ops"),),
                    (("commonName", "jane"),),
                )
            },
            User("jane", ("dev", "ops", "system:authenticated")),
        ),
    ],
)
def test_a_client_certificate_names_its_user(
    certificate: dict[str, object] | None, user: User | None
) -> None:
    assert from_certificate(certificate) == user


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("system:serviceaccount:ci:builder", ("ci", "builder")),
        ("system:serviceaccount:ci", None),
        ("system:serviceaccount::x", None),
        ("system:serviceaccount:a:b:c", None),
        ("jane", None),
    ],
)
def test_user_names_of_service_accounts(name: str, account: tuple[str, str] | None) -> None:
    assert split_service_account(name) == account


def token_file(path: Path, text: str) -> TokenFile:
    path.write_text(text)
    path.chmod(0o600)
    return TokenFile(path)


def test_tokens_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    tokens = token_file(path, '# ours\ns3cret,jane,u1,"dev,ops"\nother,joe,u2\n')
    jane = tokens.find("s3cret")
    assert jane is not None
    assert (jane.name, jane.uid, jane.groups) == ("jane", "u1", ("dev", "ops", AUTHENTICATED))
    assert tokens.find("S3cret") is None
    assert tokens.find("") is None
    token_file(path, "newer-token,ann,u3\n")
    assert tokens.find("s3cret") is None
    assert tokens.find("newer-token") == authenticated("ann", uid="u3")
    path.unlink()
    assert tokens.find("newer-token") is None


def test_a_token_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "tokens", "s3cret,jane,u1\n")
    (tmp_path / "tokens").chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        tokens.find("s3cret")


def test_a_malformed_token_file_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a line is token,user,uid"):
        token_file(tmp_path / "tokens", "s3cret,jane\n").find("s3cret")


class Objects:
    """Which objects are there, by plural, namespace, name and uid."""

    def __init__(self) -> None:
        self.present = {("serviceaccounts", "ci", "builder", "uid-1"), ("pods", "ci", "p", "uid-2")}

    def still_there(self, *identity: str) -> bool:
        return identity in self.present


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "service-account.key"
    path.write_bytes(new_key())
    return path


def signer(key: Path, objects: Objects | None = None, **more: str) -> TokenSigner:
    return TokenSigner(key, still_there=(objects or Objects()).still_there, **more)


def test_a_token_leads_back_to_its_service_account(key: Path) -> None:
    token = signer(key).issue(BUILDER, now=NOW, lifetime=600)
    user = signer(key).verify(token, now=NOW + 1)
    assert user == service_account("ci", "builder", uid="uid-1", extra=user.extra if user else {})
    assert user is not None
    assert "system:serviceaccounts:ci" in user.groups


def claims_of(token: str) -> dict[str, object]:
    part = token.split(".")[1]
    claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def test_a_token_has_the_claims_that_kubernetes_gives_it(key: Path) -> None:
    bearer = Bearer("ci", "builder", "uid-1", "p", "uid-2")
    claims = claims_of(signer(key).issue(bearer, now=NOW, lifetime=600, audiences=["vault"]))
    assert claims.pop("jti")
    assert claims == {
        "aud": ["vault"],
        "exp": NOW + 600,
        "iat": NOW,
        "nbf": NOW,
        "iss": "https://kubernetes.default.svc.cluster.local",
        "sub": "system:serviceaccount:ci:builder",
        "kubernetes.io": {
            "namespace": "ci",
            "serviceaccount": {"name": "builder", "uid": "uid-1"},
            "pod": {"name": "p", "uid": "uid-2"},
        },
    }


Tamper = Callable[[str], str]


def with_claims(token: str, **changed: object) -> str:
    header, _, signature = token.split(".")
    body = json.dumps({**claims_of(token), **changed}).encode()
    return f"{header}.{base64.urlsafe_b64encode(body).rstrip(b'=').decode()}.{signature}"


def unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


@pytest.mark.parametrize(
    ("tamper", "later", "audiences"),
    [
        (lambda t: with_claims(t, sub="system:serviceaccount:kube-system:root"), 1, []),
        (lambda t: with_claims(t, exp=NOW * 2), 1, []),
        (unsigned, 1, []),
        (lambda t: t + "A", 1, []),
        (lambda t: t[:-2], 1, []),
        (lambda _: "not.a.token", 1, []),
        (lambda _: "", 1, []),
        (lambda t: t, 600, []),
        (lambda t: t, -1, []),
        (lambda t: t, 1, ["vault"]),
    ],
)
def test_tokens_that_are_not_accepted(
    key: Path, tamper: Tamper, later: float, audiences: list[str]
) -> None:
    subject = signer(key)
    token = subject.issue(BUILDER, now=NOW, lifetime=600)
    assert subject.verify(token, now=NOW + 1) is not None
    assert subject.verify(tamper(token), now=NOW + later, audiences=audiences) is None


def test_a_token_of_another_key_or_issuer_is_not_accepted(key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    other.write_bytes(new_key())
    foreign = signer(other).issue(BUILDER, now=NOW, lifetime=600)
    elsewhere = signer(key, issuer="https://example.com").issue(BUILDER, now=NOW, lifetime=600)
    assert signer(key).verify(foreign, now=NOW) is None
    assert signer(key).verify(elsewhere, now=NOW) is None


@pytest.mark.parametrize(
    "gone", [("serviceaccounts", "ci", "builder", "uid-1"), ("pods", "ci", "p", "uid-2")]
)
def test_a_token_ends_with_what_it_is_bound_to(key: Path, gone: tuple[str, str, str, str]) -> None:
    objects = Objects()
    subject = signer(key, objects)
    token = subject.issue(Bearer("ci", "builder", "uid-1", "p", "uid-2"), now=NOW, lifetime=600)
    assert subject.verify(token, now=NOW) is not None
    objects.present.remove(gone)
    assert subject.verify(token, now=NOW) is None


@given(st.binary(max_size=40))
def test_no_bytes_break_the_verification(key: Path, noise: bytes) -> None:
    text = noise.decode("latin-1")
    assert signer(key).verify(f"{text}.{text}.{text}", now=NOW) is None


@pytest.fixture
def authenticator(tmp_path: Path, key: Path) -> Authenticator:
    return Authenticator(token_file(tmp_path / "tokens", "s3cret,jane,u1\n"), signer(key))


JOHN = {"subject": ((("commonName", "john"),),)}


@pytest.mark.parametrize(
    ("certificate", "authorization", "path", "name"),
    [
        (JOHN, None, "/api/v1/pods", "john"),
        (JOHN, "Bearer s3cret", "/api/v1/pods", "john"),
        (None, "Bearer s3cret", "/api/v1/pods", "jane"),
        (None, "bearer s3cret", "/api/v1/pods", "jane"),
        (None, None, "/readyz", "system:anonymous"),
        (None, None, "/healthz", "system:anonymous"),
    ],
)
def test_who_makes_a_request(
    authenticator: Authenticator,
    certificate: dict[str, object] | None,
    authorization: str | None,
    path: str,
    name: str,
) -> None:
    assert authenticator.identify(certificate, authorization, path, NOW).name == name


@pytest.mark.parametrize(
    ("authorization", "path"),
    [
        (None, "/api/v1/pods"),
        (None, "/version"),
        (None, "/healthz/x"),
        ("Bearer wrong", "/healthz"),
        ("Basic s3cret", "/api/v1/pods"),
        ("Bearer", "/api/v1/pods"),
        ("Bearer  ", "/api/v1/pods"),
    ],
)
def test_requests_of_nobody_are_refused(
    authenticator: Authenticator, authorization: str | None, path: str
) -> None:
    with pytest.raises(StatusError) as error:
        authenticator.identify(None, authorization, path, NOW)
    assert (error.value.code, error.value.message) == (401, "Unauthorized")


@pytest.mark.parametrize(("text", "mode"), [("s3cret,jane,u1\n", 0o640), ("s3cret\n", 0o600)])
def test_a_faulty_token_file_admits_no_user_and_is_logged(
    tmp_path: Path, key: Path, caplog: pytest.LogCaptureFixture, text: str, mode: int
) -> None:
    tokens = token_file(tmp_path / "tokens", text)
    (tmp_path / "tokens").chmod(mode)
    with pytest.raises(StatusError, match="Unauthorized"):
        Authenticator(tokens, signer(key)).identify(None, "Bearer s3cret", "/api", NOW)
    assert "no token of the file is accepted" in caplog.text
    assert "s3cret" not in caplog.text
