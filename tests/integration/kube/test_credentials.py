"""Who the client is, with real exec plugins and a server that looks at the header."""

from __future__ import annotations

import dataclasses
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.fake_server import FakeServer, Fault

from lockstep.api.core import CONFIG_MAPS, NAMESPACES
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig, ExecPlugin
from lockstep.kube.credentials import TOKEN_FILE_KEPT, Credentials
from lockstep.kube.errors import ConfigError, Unauthorized, Unreachable

UNAUTHORIZED = Fault("status", status=401, reason="Unauthorized")
V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str], ExecPlugin]:
    """Makes a plugin of Python source; ``count`` tells it how often it has run."""

    def make(source: str) -> ExecPlugin:
        path = tmp_path / "login"
        path.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys, pathlib\n"
            "runs = pathlib.Path(__file__).with_suffix('.runs')\n"
            "count = len(runs.read_text()) + 1 if runs.exists() else 1\n"
            "runs.write_text('x' * count)\n"
            "def answer(api='client.authentication.k8s.io/v1', **status):\n"
            "    print(json.dumps({'apiVersion': api, 'kind': 'ExecCredential',"
            " 'status': status}))\n" + source
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return ExecPlugin(command=str(path), args=("login",), env=(("WHO", "me"),))

    return make


def runs(plugin: ExecPlugin) -> int:
    return len(Path(plugin.command).with_suffix(".runs").read_text())


def sent(fake: FakeServer) -> list[str | None]:
    return [seen.headers.get("Authorization") for seen in fake.seen]


@pytest.mark.parametrize(
    ("identity", "header"),
    [
        ({}, None),
        ({"token": "t"}, "Bearer t"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
    ],
)
async def test_fixed_credentials_are_sent(
    fake: FakeServer, identity: dict[str, str], header: str | None
) -> None:
    async with Client(ClusterConfig(server=fake.url, **identity)) as client:  # type: ignore[arg-type]
        await client.get(CONFIG_MAPS, "x")
    assert sent(fake) == [header]


async def test_a_plugin_is_asked_once_until_its_token_expires(
    plugin: Callable[[str], ExecPlugin],
) -> None:
    now = 1_000_000_000.0
    one = plugin("answer(token=f't{count}', expirationTimestamp='2001-09-09T01:56:40Z')")
    config = ClusterConfig(server="http://x", exec_plugin=one)
    credentials = Credentials(config, clock=lambda: now)
    assert (await credentials.current()).authorization == "Bearer t1"
    now += 500.0
    assert (await credentials.current()).authorization == "Bearer t1"
    now += 90.0
    assert (await credentials.current()).authorization == "Bearer t2"


async def test_a_plugin_is_told_what_it_may_know(plugin: Callable[[str], ExecPlugin]) -> None:
    one = plugin(
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "answer(token='-'.join([os.environ['WHO'], sys.argv[1], info['spec']['cluster']['server'],"
        " str(info['spec']['interactive'])]))"
    )
    one = dataclasses.replace(one, provide_cluster_info=True)
    config = ClusterConfig(server="http://x", exec_plugin=one)
    found = await Credentials(config).current()
    assert found.authorization == "Bearer me-login-http://x-False"


async def test_a_refused_token_is_asked_for_once_more(
    fake: FakeServer, plugin: Callable[[str], ExecPlugin]
) -> None:
    one = plugin("answer(token=f't{count}')")
    fake.faults.append(UNAUTHORIZED)
    async with Client(ClusterConfig(server=fake.url, exec_plugin=one)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "x"}})
        fake.faults.extend([UNAUTHORIZED, UNAUTHORIZED])
        with pytest.raises(Unauthorized):
            await client.get(CONFIG_MAPS, "x")
    assert sent(fake) == ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3"]


async def test_fixed_credentials_that_are_refused_are_not_sent_again(fake: FakeServer) -> None:
    fake.faults.append(UNAUTHORIZED)
    async with Client(ClusterConfig(server=fake.url, token="t")) as client:
        with pytest.raises(Unauthorized):
            await client.get(CONFIG_MAPS, "x")
    assert len(fake.seen) == 1


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = Credentials(ClusterConfig("http://x", token_file=path), clock=lambda: now)
    first = await credentials.current()
    path.write_text("two")
    assert (await credentials.current()) is first
    now += TOKEN_FILE_KEPT
    assert (await credentials.current()).authorization == "Bearer two"
    path.write_text("three")
    assert credentials.refuse(await credentials.current())
    assert (await credentials.current()).authorization == "Bearer three"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sys.exit('no network')", ["failed with exit code 1", "no network"]),
        ("print('hello')", ["printed no ExecCredential"]),
        ("answer()", ["neither token nor certificate"]),
        ("answer(api='client.authentication.k8s.io/v1beta1', token='t')", ["v1beta1", V1]),
    ],
)
async def test_a_plugin_that_fails_is_named(
    plugin: Callable[[str], ExecPlugin], source: str, words: list[str]
) -> None:
    one = plugin(source)
    with pytest.raises(ConfigError) as caught:
        await Credentials(ClusterConfig("http://x", exec_plugin=one)).current()
    assert all(word in str(caught.value) for word in [one.command, *words])


async def test_a_plugin_that_is_missing_says_how_to_install_it() -> None:
    one = ExecPlugin(command="/nowhere/login", install_hint="apt install login")
    with pytest.raises(ConfigError, match="apt install login"):
        await Credentials(ClusterConfig("http://x", exec_plugin=one)).current()


async def test_a_plugin_may_give_a_certificate(
    shared_server: ApiServer, plugin: Callable[[str], ExecPlugin]
) -> None:
    pki = shared_server.data / "pki"
    one = plugin(
        f"pki = pathlib.Path({str(pki)!r})\n"
        "answer(clientCertificateData=(pki / 'admin.crt').read_text(),"
        " clientKeyData=(pki / 'admin.key').read_text())"
    )
    ca = (pki / "ca.crt").read_bytes()
    config = ClusterConfig(server=shared_server.url, ca=ca, exec_plugin=one)
    async with Client(config) as client:
        assert (await client.get(NAMESPACES, "default")).metadata.name == "default"
    assert runs(one) == 1


async def test_the_server_must_show_a_certificate_that_is_trusted(
    shared_server: ApiServer,
) -> None:
    trusted = ClusterConfig.load(shared_server.kubeconfig)
    stranger = dataclasses.replace(trusted, ca=None)
    async with Client(stranger) as client:
        with pytest.raises(Unreachable, match=r"TLS: .*certificate"):
            await client.get(NAMESPACES, "default")
    async with Client(dataclasses.replace(stranger, insecure=True)) as client:
        await client.get(NAMESPACES, "default")
    async with Client(dataclasses.replace(trusted, tls_server_name="elsewhere")) as client:
        with pytest.raises(Unreachable, match=r"[Hh]ostname"):
            await client.get(NAMESPACES, "default")


async def test_a_private_key_never_lies_on_the_disk(
    shared_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with shared_server.client() as client:
        await client.get(NAMESPACES, "default")
        assert list(tmp_path.iterdir()) == []
