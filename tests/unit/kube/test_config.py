"""Which API server, and as whom."""

from __future__ import annotations

import base64
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.kube import locate
from lockstep.kube.config import ClusterConfig, ExecPlugin, from_kubeconfig, in_cluster
from lockstep.kube.errors import ConfigError

HERE = "https://127.0.0.1:6443"


def kubeconfig(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "one",
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": HERE, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
    }


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with nothing in the environment."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, {"server": HERE, "namespace": "default", "insecure": False}),
        ({"cluster": {"server": HERE + "/"}}, {"server": HERE}),
        ({"context": {"namespace": "team"}}, {"namespace": "team"}),
        ({"cluster": {"insecure-skip-tls-verify": True}}, {"insecure": True}),
        ({"cluster": {"tls-server-name": "kube"}}, {"tls_server_name": "kube"}),
        ({"cluster": {"certificate-authority-data": b64("CA")}}, {"ca": b"CA"}),
        (
            {"user": {"client-certificate-data": b64("C"), "client-key-data": b64("K")}},
            {"client_certificate": b"C", "client_key": b"K"},
        ),
        ({"user": {"token": "t"}}, {"token": "t", "token_file": None}),
        (
            {"user": {"token": "t", "tokenFile": "/x"}},
            {"token": None, "token_file": Path("/x")},
        ),
        ({"user": {"username": "u", "password": "p"}}, {"username": "u", "password": "p"}),
        (
            {
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": "login",
                        "args": ["-x", 1],
                        "env": [{"name": "A", "value": "b"}],
                        "installHint": "install it",
                    }
                }
            },
            {
                "exec_plugin": ExecPlugin(
                    command="login",
                    args=("-x", "1"),
                    env=(("A", "b"),),
                    api_version="client.authentication.k8s.io/v1beta1",
                    install_hint="install it",
                )
            },
        ),
    ],
)
def test_a_kubeconfig_is_read(parts: dict[str, Any], expected: dict[str, Any]) -> None:
    config = from_kubeconfig(kubeconfig(**parts))
    assert {key: getattr(config, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (kubeconfig(cluster={"proxy-url": "http://p:1"}), ["proxy-url", "http://p:1"]),
        (kubeconfig(cluster={"server": "127.0.0.1:6443"}), ["127.0.0.1:6443", "https://"]),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), ["certificate-authority-data"]),
        (kubeconfig(user={"client-key": "/nowhere/key"}), ["client-key", "/nowhere/key"]),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), ["auth-provider", "exec plugin"]),
        (kubeconfig(user={"exec": {"args": []}}), ["exec plugin", "command"]),
        (kubeconfig(context={"cluster": "other"}), ["cluster 'other'", "one"]),
        ({**kubeconfig(), "current-context": "gone"}, ["context 'gone'", "one"]),
        ({**kubeconfig(), "current-context": ""}, ["current-context"]),
    ],
)
def test_what_cannot_work_is_refused_with_its_name(
    document: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        from_kubeconfig(document)
    assert all(word in str(caught.value) for word in words)


def test_secrets_stay_out_of_the_representation() -> None:
    user = {"token": "s3cret", "password": "s3cret", "client-key-data": b64("s3cret")}
    assert "s3cret" not in repr(from_kubeconfig(kubeconfig(user=user)))


def test_paths_are_relative_to_their_file(home: Path) -> None:
    (home / "pki").mkdir()
    (home / "pki" / "ca.crt").write_text("CA")
    user = {"tokenFile": "token", "exec": {"command": "./login"}}
    path = write(
        home / "kubeconfig",
        kubeconfig(cluster={"certificate-authority": "pki/ca.crt"}, user=user),
    )
    config = ClusterConfig.load(path)
    assert config.ca == b"CA"
    assert config.token_file == home / "token"
    assert config.exec_plugin is not None
    assert config.exec_plugin.command == str(home / "login")


def test_of_several_files_the_first_entry_of_a_name_counts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(home / "1", kubeconfig())
    two = write(home / "2", kubeconfig(cluster={"server": "https://elsewhere"}))
    three = write(home / "3", kubeconfig(cluster={"server": "https://three"}, name="three"))
    files = [one, home / "missing", two, three]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert ClusterConfig.load().server == HERE
    assert ClusterConfig.load(context="three").server == "https://three"


def test_the_running_control_plane_comes_before_the_home(home: Path) -> None:
    write(home / ".kube" / "config", kubeconfig())
    data = locate.embedded_data()
    write(data / "kubeconfig", kubeconfig(cluster={"server": "https://embedded"}))
    lock = data / "up.lock"
    lock.touch()
    assert ClusterConfig.load().server == HERE
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ClusterConfig.load().server == "https://embedded"


def test_a_pod_finds_its_service_account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match="no service account token"):
        in_cluster(home)
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "team\n")):
        (home / name).write_text(text)
    config = in_cluster(home)
    assert config.server == "https://[fd00::1]:443"
    assert (config.ca, config.namespace, config.token_file) == (b"CA", "team", home / "token")


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "not YAML"), ("[]", "not a kubeconfig"), (None, "no kubeconfig at")],
)
def test_a_file_that_is_no_kubeconfig_is_named(home: Path, text: str | None, words: str) -> None:
    path = home / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        ClusterConfig.load(path)
    assert str(path) in str(caught.value)


def test_without_any_configuration_it_says_what_to_do(home: Path) -> None:
    with pytest.raises(ConfigError, match="lockstep up"):
        ClusterConfig.load()
