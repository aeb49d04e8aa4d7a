"""Who the client is: fixed credentials, tokens that are renewed in a file, exec plugins."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from lockstep.api.wire import Wire
from lockstep.kube.config import ClusterConfig, ExecPlugin
from lockstep.kube.errors import ConfigError

TOKEN_FILE_KEPT = 60.0
"""Seconds for which a token file's content is used before it is read again."""
EXPIRY_MARGIN = 30.0
PLUGIN_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What is shown to the server: an Authorization header, a client certificate, both or none."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)


class _PluginStatus(Wire, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _PluginAnswer(Wire, frozen=True):
    kind: str = ""
    api_version: str = ""
    status: _PluginStatus | None = None


class Credentials:
    """The credential to use now; asks its source again when it has expired."""

    def __init__(self, config: ClusterConfig, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._current: Credential | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """Return a credential that has not expired.

        Raises:
            ConfigError: when a token file cannot be read or an exec plugin fails.
        """
        if self._current is not None and self._clock() < self._until:
            return self._current
        async with self._lock:
            if self._current is None or self._clock() >= self._until:
                self._current, self._until = await self._obtain()
            return self._current

    def refuse(self, credential: Credential) -> bool:
        """Note that the server refused *credential*; true when asking again may help."""
        if self._config.exec_plugin is None and self._config.token_file is None:
            return False
        if self._current is credential:
            self._current = None
        return True

    async def _obtain(self) -> tuple[Credential, float]:
        config = self._config
        now = self._clock()
        if config.exec_plugin is not None:
            return await _ask_plugin(config.exec_plugin, config)
        if config.token_file is not None:
            token = _read_token(config.token_file)
            until = now + TOKEN_FILE_KEPT
            return self._credential(f"Bearer {token}"), until
        return self._credential(_fixed_header(config)), float("inf")

    def _credential(self, authorization: str | None) -> Credential:
        return Credential(authorization, self._config.client_certificate, self._config.client_key)


def _fixed_header(config: ClusterConfig) -> str | None:
    if config.token:
        return f"Bearer {config.token}"
    if config.username is not None:
        pair = f"{config.username}:{config.password or ''}".encode()
        return "Basic " + base64.b64encode(pair).decode()
    return None


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"the token cannot be read: {error}") from error


async def _ask_plugin(plugin: ExecPlugin, config: ClusterConfig) -> tuple[Credential, float]:
    answer = _parse_answer(plugin, await _run_plugin(plugin, config))
    credential = Credential(
        f"Bearer {answer.token}" if answer.token else None,
        answer.client_certificate_data.encode() or config.client_certificate,
        answer.client_key_data.encode() or config.client_key,
    )
    if not answer.expiration_timestamp:
        return credential, float("inf")
    expires = datetime.fromisoformat(answer.expiration_timestamp).timestamp()
    return credential, expires - EXPIRY_MARGIN


def _parse_answer(plugin: ExecPlugin, output: bytes) -> _PluginStatus:
    try:
        answer = msgspec.json.decode(output, type=_PluginAnswer)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"the exec plugin {plugin.command} printed no ExecCredential: {error}"
        ) from None
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise ConfigError(f"the exec plugin {plugin.command} gave neither token nor certificate")
    if answer.api_version != plugin.api_version:
        raise ConfigError(
            f"the exec plugin {plugin.command} answered with {answer.api_version}, "
            f"the kubeconfig says {plugin.api_version}"
        )
    return status


def _plugin_input(plugin: ExecPlugin, config: ClusterConfig) -> bytes:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = {
            "server": config.server,
            "certificate-authority-data": base64.b64encode(config.ca or b"").decode(),
            "insecure-skip-tls-verify": config.insecure,
            "tls-server-name": config.tls_server_name or "",
        }
    return msgspec.json.encode(
        {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    )


async def _run_plugin(plugin: ExecPlugin, config: ClusterConfig) -> bytes:
    info = _plugin_input(plugin, config).decode()
    env = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": info}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        raise ConfigError(f"the exec plugin {plugin.command} cannot run: {error}{hint}") from error
    try:
        output, complaint = await asyncio.wait_for(process.communicate(), PLUGIN_TIMEOUT)
    except TimeoutError:
        raise ConfigError(
            f"the exec plugin {plugin.command} did not answer in {PLUGIN_TIMEOUT:.0f} s"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        text = complaint.decode("utf-8", "replace").strip()[-500:]
        raise ConfigError(
            f"the exec plugin {plugin.command} failed with exit code {process.returncode}: {text}"
        )
    return output
