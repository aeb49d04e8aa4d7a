"""The process ``lockstep console --serve``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lockstep.console import links
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.options import Options
from lockstep.console.planning import Simulator
from lockstep.console.sessions import Sessions
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
    from lockstep.console.apps import Apps
    from lockstep.console.audit import Trail
    from lockstep.console.records import Records
    from lockstep.console.signing_in import SigningIn

    _check(options)
    config = ClusterConfig.load(options.kubeconfig, options.context)
    async with Client(config) as client:
        world, sessions = ClusterCache(client), Sessions(config, options.state)
        listening = socket.create_server((options.host, options.port), family=_family(options.host))
        port = listening.getsockname()[1]
        secure = options.certificate is not None or options.self_signed
        settings = _settings(options, port, secure=secure)
        apps = Apps(settings.origins, options.apps_host)
        own = options.state / AUDIT if options.state is not None else None
        trail, records = Trail(options.audit_log, own), Records(options.records, client)
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
    if not loopback and not options.origin:
        raise NotSafe("--origin: say how browsers reach it, as https://console.example.com")
    if bool(options.proxy_header) != bool(options.proxy):
        raise NotSafe("--proxy-header, --proxy: give both: which header, and from where it counts")
    if bool(options.oidc_issuer) != bool(options.oidc_client):
        raise NotSafe("--oidc-issuer, --oidc-client: give both")


def _settings(options: Options, port: int, *, secure: bool) -> Settings:
    import ssl

    from lockstep.console.oidc import Issuer
    from lockstep.console.signing_in import Settings

    scheme = "https" if secure else "http"
    here = {f"{scheme}://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    every = frozenset({*here, *(one.rstrip("/") for one in options.origin or ())})
    tls_alone = secure or any(one.startswith("https://") for one in options.origin or ())
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
        tuple(ip_network(one) for one in options.proxy or ()),
    )


def _tls(options: Options) -> SSLContext | None:
    import ssl

    if options.certificate is None and not options.self_signed:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if options.certificate is None:
        from lockstep.keys.authority import self_signed

        host = urlsplit(next(iter(options.origin or ()), "")).hostname or "localhost"
        load_pair(context, *self_signed(host, addresses=("127.0.0.1",)))
        return context
    context.load_cert_chain(options.certificate, options.key)
    return context


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
