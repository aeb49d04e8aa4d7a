"""The process ``lockstep console --serve``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lockstep.console import links
from lockstep.console.planning import Simulator
from lockstep.console.sessions import Sessions
from lockstep.console.world import World
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.tls import load_pair

if TYPE_CHECKING:
    from ssl import SSLContext

    from lockstep.console.signing_in import Settings

AUDIT: Final = "audit.log"
SECURE_COOKIE: Final = "__Host-lockstep"


class NotSafe(ValueError):
    """The console was told to serve where credentials would be open to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the console is served."""

    kubeconfig: Path | None = None
    port: int = 7490
    host: str = "127.0.0.1"
    state: Path | None = None
    """Private directory with one-time links and the console's own audit; none when left out."""
    origins: tuple[str, ...] = ()
    """Further addresses at which it is reached, as ``https://console.example.com``."""
    apps_host: str = ""
    certificate: Path | None = None
    key: Path | None = None
    self_signed: bool = False
    """Whether it makes a certificate for itself: for what speaks TLS again in front of it."""
    records: Path | None = None
    audit_log: Path | None = None
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_secret_file: Path | None = None
    oidc_ca: Path | None = None
    proxy_header: str = ""
    proxies: tuple[str, ...] = ()


async def run(
    options: Options, *, ready: Callable[[str], None], simulator: Simulator | None = None
) -> None:
    """Serve the console until cancelled.

    Raises:
        NotSafe: when credentials would travel in the clear, or every address could vouch.
        OSError: when the port is taken or a file cannot be read.
    """
    from aiohttp import web

    from lockstep.console.app import Console, Parts
    from lockstep.console.apps import Apps, host_of
    from lockstep.console.audit import Trail
    from lockstep.console.records import Records
    from lockstep.console.signing_in import SigningIn

    _check(options)
    config = ClusterConfig.load(options.kubeconfig)
    async with Client(config) as client:
        world, sessions = World(client), Sessions(config, options.state)
        listening = socket.create_server((options.host, options.port), family=_family(options.host))
        port = listening.getsockname()[1]
        secure = options.certificate is not None or options.self_signed
        settings = _settings(options, port, secure=secure)
        public = next(iter(options.origins), f"http://localhost:{port}")
        behind_tls = secure or public.startswith("https://")
        apps = Apps(options.apps_host or host_of(public), secure=behind_tls)
        own = options.state / AUDIT if options.state is not None else None
        trail, records = Trail(options.audit_log, own), Records(options.records)
        signing_in = SigningIn(sessions, settings)
        console = Console(Parts(world, sessions, signing_in, apps, trail, records, simulator))
        runner = web.AppRunner(console.app(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listening, ssl_context=_tls(options)).start()
            named = f"[{options.host}]" if ":" in options.host else options.host
            address = f"{'https' if secure else 'http'}://{named}:{port}"
            if options.state is not None:
                links.publish(options.state, address)
            ready(f"ready {address}")
            await asyncio.Event().wait()
        finally:
            await sessions.close()
            await apps.close()
            await world.close()
            await runner.cleanup()


def _check(options: Options) -> None:
    loopback = ip_address(options.host).is_loopback
    if not loopback and options.certificate is None and not options.self_signed:
        raise NotSafe(
            f"--host {options.host}: tokens would travel in the clear; give --certificate and "
            "--key, or --self-signed, or listen on loopback with what speaks TLS in front"
        )
    if options.certificate is not None and options.self_signed:
        raise NotSafe("--certificate, --self-signed: give one of them")
    if (options.certificate is None) != (options.key is None):
        raise NotSafe("--certificate, --key: give both")
    if not loopback and not options.origins:
        raise NotSafe("--origin: say how browsers reach it, as https://console.example.com")
    if bool(options.proxy_header) != bool(options.proxies):
        raise NotSafe("--proxy-header, --proxy: give both: which header, and from where it counts")
    if bool(options.oidc_issuer) != bool(options.oidc_client):
        raise NotSafe("--oidc-issuer, --oidc-client: give both")


def _settings(options: Options, port: int, *, secure: bool) -> Settings:
    import ssl

    from lockstep.console.oidc import Issuer
    from lockstep.console.signing_in import Settings

    scheme = "https" if secure else "http"
    here = {f"{scheme}://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    every = frozenset({*here, *(one.rstrip("/") for one in options.origins)})
    tls_alone = secure or any(one.startswith("https://") for one in options.origins)
    issuer = None
    if options.oidc_issuer:
        secret = options.oidc_secret_file.read_text().strip() if options.oidc_secret_file else ""
        trust = ssl.create_default_context(cafile=options.oidc_ca) if options.oidc_ca else None
        issuer = Issuer(options.oidc_issuer, options.oidc_client, secret, trust)
    return Settings(
        every,
        SECURE_COOKIE if tls_alone else f"lockstep-{port}",
        issuer,
        options.proxy_header,
        tuple(ip_network(one) for one in options.proxies),
    )


def _tls(options: Options) -> SSLContext | None:
    import ssl

    if options.certificate is None and not options.self_signed:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if options.certificate is None:
        from lockstep.keys.authority import self_signed

        host = urlsplit(next(iter(options.origins), "")).hostname or "localhost"
        load_pair(context, *self_signed(host, addresses=("127.0.0.1",)))
        return context
    context.load_cert_chain(options.certificate, options.key)
    return context


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
