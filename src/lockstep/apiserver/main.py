"""The server's process: files, certificates, the listening socket, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.apiserver.api import Api
from lockstep.apiserver.audit import AuditLog
from lockstep.apiserver.auth.authenticate import Authenticator
from lockstep.apiserver.auth.bootstrap import COMPONENT_USERS
from lockstep.apiserver.auth.kubeconfig import write_kubeconfig
from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.auth.service_accounts import TokenSigner
from lockstep.apiserver.auth.tokens import TokenFile
from lockstep.apiserver.bootstrap import create_missing, publish
from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.controllers.accounts import DefaultAccounts
from lockstep.apiserver.controllers.budgets import budget_status
from lockstep.apiserver.controllers.claims import DeviceClaims
from lockstep.apiserver.controllers.crds import CrdWatch
from lockstep.apiserver.controllers.housekeeping import Housekeeper
from lockstep.apiserver.controllers.quotas import quota_status
from lockstep.apiserver.controllers.rbac import RbacWatch
from lockstep.apiserver.gate import Gate, uid_of
from lockstep.apiserver.handlers.logs import Logs
from lockstep.apiserver.handlers.proxy import Proxy
from lockstep.apiserver.handlers.remote import Remote
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.store import Store
from lockstep.apiserver.watch import Hub
from lockstep.http.server import HttpServer, tls_context
from lockstep.keys.files import private_directory


async def run(
    *,
    data: Path,
    port: int = 0,
    host: str = "127.0.0.1",
    kubeconfig: Path | None = None,
    audit_log: Path | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve the API from the directory *data* until SIGINT or SIGTERM.

    *ready* is called with a line once requests are answered; by then the administrator's
    kubeconfig and those of the components are written.

    Raises:
        LogInUse: when another server has the directory open.
        OSError: when the port is taken or the directory cannot be written.
    """
    stop = _stop_at_signals()
    _spare_the_collector()
    private_directory(data)
    parts = await _open(data)
    tasks = parts.start()
    pair = parts.pki.serving(_names(host))
    server = HttpServer(tls_context(pair.certificate, pair.key, parts.pki.ca))
    port = await server.bind(host, port)
    address = f"{_bracketed(_reachable(host))}:{port}"
    await publish(parts.objects, _reachable(host), port)
    api = parts.api(address, AuditLog(audit_log))
    server.serve(api, api.admit)
    target = kubeconfig or data / "kubeconfig"
    # What is loaded by now stays.
    gc.freeze()
    parts.pki.node_agent()
    write_kubeconfigs(parts.pki, data, target, f"https://{address}")
    ready(f"ready: serving https://{address}, kubeconfig {target}")
    told = asyncio.create_task(stop.wait())
    # One of the server's own tasks ends only by an error, and then the server is no use.
    await asyncio.wait([told, *tasks], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    await server.close()
    await parts.close(tasks)


@dataclass
class _Parts:
    """What a server is made of, apart from its socket."""

    pki: Pki
    store: Store
    hub: Hub
    objects: Objects
    signer: TokenSigner
    gate: Gate
    logs: Logs
    remote: Remote
    proxy: Proxy

    def start(self) -> list[asyncio.Task[None]]:
        """Start what the server does by itself."""
        housekeeper = Housekeeper(self.objects, self.gate.rbac)
        housekeeper.start()
        return [
            asyncio.create_task(housekeeper.run()),
            DefaultAccounts(self.objects).start(),
            DeviceClaims(self.objects).start(),
            budget_status(self.objects).start(),
            quota_status(self.objects, self.objects.limits.ledger).start(),
        ]

    def api(self, address: str, audit: AuditLog) -> Api:
        """Return what answers requests."""
        return Api(
            self.objects,
            self.hub,
            self.gate,
            self.signer,
            logs=self.logs,
            remote=self.remote,
            proxy=self.proxy,
            address=address,
            audit=audit,
        )

    async def close(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """End *tasks* and close the files; raise what one of them has died of."""
        await self.logs.close()
        await self.proxy.close()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await self.store.close()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome


async def _open(data: Path) -> _Parts:
    pki = Pki(data / "pki")
    store = Store(data / "store.db")
    catalog, hub = Catalog(), Hub()
    # Before the hub: an object of a new kind can be watched as soon as its CRD is seen.
    CrdWatch(store, catalog, hub).start()
    store.subscribe(hub.publish)
    objects = Objects(store, catalog)
    signer = TokenSigner(pki.signing_key(), still_there=uid_of(store))
    gate = Gate(Authenticator(TokenFile(data / "tokens.csv"), signer), objects.clock)
    RbacWatch(store, gate.rbac).start()
    await create_missing(objects)
    ways = Logs(store, pki), Remote(store, pki), Proxy(store)
    return _Parts(pki, store, hub, objects, signer, gate, *ways)


def _spare_the_collector() -> None:
    """Look for cycles seldom: requests make trees, which go by themselves."""
    gc.set_threshold(100_000, 20, 100)


def write_kubeconfigs(pki: Pki, data: Path, target: Path, url: str) -> None:
    """Write the administrator's kubeconfig to *target*, and each component's own below *data*."""
    admin = pki.client("admin", user="kubernetes-admin", groups=["system:masters"])
    write_kubeconfig(target, server=url, ca=pki.ca, user="kubernetes-admin", pair=admin)
    for name, user in COMPONENT_USERS.items():
        pair = pki.client(name, user=user)
        path = data / "kubeconfigs" / f"{name}.kubeconfig"
        write_kubeconfig(path, server=url, ca=pki.ca, user=user, pair=pair)


def _stop_at_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _names(host: str) -> list[str]:
    local = ["localhost", "127.0.0.1", "::1"]
    inside = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    return list(dict.fromkeys([*local, *inside, _reachable(host)]))
