"""Which API server to talk to, and as whom: kubeconfig files and the in-cluster environment."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lockstep.kube.errors import ConfigError
from lockstep.kube.locate import SERVICE_ACCOUNT, kubeconfig_files


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials (``client.authentication.k8s.io``)."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provide_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Everything that is needed to connect; secrets stay out of its repr."""

    server: str
    ca: bytes | None = None
    client_certificate: bytes | None = None
    client_key: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = None
    namespace: str = "default"
    insecure: bool = False
    tls_server_name: str | None = None
    acts_as: str = ""
    """User in whose name requests are made, with the right to impersonate; the own one if empty."""

    @classmethod
    def load(cls, path: Path | None = None, context: str | None = None) -> ClusterConfig:
        """Read *path*, or else the first of: $KUBECONFIG, a running ``lockstep up``,
        ``~/.kube/config``, the pod's service account.

        Raises:
            ConfigError: when there is none, or it is not usable; the message says what to do.
        """
        files = [path] if path is not None else kubeconfig_files()
        if files:
            return from_kubeconfig(_merge(files), context)
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            return in_cluster()
        raise ConfigError(
            "no API server configured: start one with `lockstep up`, or name one with "
            "--kubeconfig FILE or $KUBECONFIG"
        )


def in_cluster(account: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """Return the configuration that a pod finds in its environment and service account.

    Raises:
        ConfigError: when the service account is not mounted.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token = account / "token"
    if not token.is_file():
        raise ConfigError(f"no service account token at {token}; is it mounted into the pod?")
    space = account / "namespace"
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=_read(account / "ca.crt", "the cluster's CA"),
        token_file=token,
        namespace=space.read_text().strip() if space.is_file() else "default",
    )


def from_kubeconfig(document: dict[str, Any], context: str | None = None) -> ClusterConfig:
    """Return what a (merged) kubeconfig says for *context*, or for its current context.

    Raises:
        ConfigError: when an entry is missing or asks for what is not supported.
    """
    name = context or document.get("current-context")
    if not name:
        raise ConfigError("the kubeconfig has no current-context; name one with --context")
    chosen = _entry(document, "context", name)
    cluster = _entry(document, "cluster", chosen.get("cluster", ""))
    user = _entry(document, "user", chosen["user"]) if chosen.get("user") else {}
    return ClusterConfig(
        server=_server(cluster),
        ca=_pem(cluster, "certificate-authority"),
        insecure=bool(cluster.get("insecure-skip-tls-verify", False)),
        tls_server_name=cluster.get("tls-server-name"),
        namespace=chosen.get("namespace") or "default",
        acts_as=_acts_as(user, str(chosen.get("user", ""))),
        **_identity(user, str(chosen.get("user", ""))),
    )


def _acts_as(user: dict[str, Any], name: str) -> str:
    for field_ in ("as-groups", "as-uid", "as-user-extra"):
        if user.get(field_):
            raise ConfigError(
                f"user {name!r} of the kubeconfig sets {field_}, which is not supported; "
                "remove it, or name a user alone with `as`"
            )
    return str(user.get("as") or "")


def _identity(user: dict[str, Any], name: str) -> dict[str, Any]:
    if "auth-provider" in user:
        raise ConfigError(
            f"user {name!r} of the kubeconfig uses auth-provider, which Kubernetes removed; "
            "use an exec plugin"
        )
    token_file = user.get("tokenFile")
    return {
        "client_certificate": _pem(user, "client-certificate"),
        "client_key": _pem(user, "client-key"),
        "token": None if token_file else user.get("token"),
        "token_file": Path(token_file) if token_file else None,
        "username": user.get("username"),
        "password": user.get("password"),
        "exec_plugin": _plugin(user["exec"], name) if user.get("exec") else None,
    }


def _plugin(spec: dict[str, Any], user: str) -> ExecPlugin:
    if not spec.get("command"):
        raise ConfigError(f"user {user!r} of the kubeconfig has an exec plugin without a command")
    return ExecPlugin(
        command=spec["command"],
        args=tuple(str(a) for a in spec.get("args") or ()),
        env=tuple((str(e["name"]), str(e["value"])) for e in spec.get("env") or ()),
        api_version=spec.get("apiVersion") or "client.authentication.k8s.io/v1",
        install_hint=spec.get("installHint") or "",
        provide_cluster_info=bool(spec.get("provideClusterInfo", False)),
    )


def _server(cluster: dict[str, Any]) -> str:
    if cluster.get("proxy-url"):
        raise ConfigError(
            f"the kubeconfig sets proxy-url {cluster['proxy-url']!r}, which is not supported; "
            "reach the API server directly or through a local tunnel"
        )
    server = str(cluster.get("server", "")).rstrip("/")
    if urlsplit(server).scheme not in ("http", "https"):
        raise ConfigError(
            f"the kubeconfig's server {server!r} is not an http:// or https:// address"
        )
    return server


def _entry(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    entries = document.get(f"{kind}s") or []
    for entry in entries:
        if entry.get("name") == name:
            return entry.get(kind) or {}
    there = ", ".join(sorted(str(e.get("name")) for e in entries)) or "none"
    raise ConfigError(f"the kubeconfig has no {kind} {name!r}; it has {there}")


def _pem(entry: dict[str, Any], key: str) -> bytes | None:
    data = entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{key}-data of the kubeconfig is not base64: {error}") from None
    file = entry.get(key)
    return _read(Path(file), key) if file else None


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} cannot be read: {error}") from error


def _merge(files: Iterable[Path]) -> dict[str, Any]:
    """Merge kubeconfigs: of entries with the same name, the first one found counts."""
    merged: dict[str, Any] = {}
    missing = []
    found = 0
    for path in files:
        if not path.is_file():
            missing.append(str(path))
            continue
        found += 1
        document = _parse(path)
        for key, value in document.items():
            if isinstance(value, list):
                known = {entry.get("name") for entry in merged.setdefault(key, [])}
                merged[key] += [e for e in value if e.get("name") not in known]
            else:
                merged.setdefault(key, value)
    if not found:
        raise ConfigError(f"no kubeconfig at {', '.join(missing)}")
    return merged


_PATHS = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}


def _parse(path: Path) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise ConfigError(f"the kubeconfig cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig")
    for section, (kind, keys) in _PATHS.items():
        for entry in document.get(section) or []:
            _resolve(entry.get(kind) or {}, keys, path.parent)
    for entry in document.get("users") or []:
        plugin = (entry.get("user") or {}).get("exec")
        if plugin and "/" in plugin.get("command", ""):
            plugin["command"] = str(path.parent / plugin["command"])
    return document


def _resolve(entry: dict[str, Any], keys: Iterable[str], base: Path) -> None:
    """Make relative paths relative to the file that names them, as kubectl does."""
    for key in keys:
        if entry.get(key):
            entry[key] = str(base / entry[key])
