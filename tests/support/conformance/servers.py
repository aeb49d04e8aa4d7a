"""The two servers that are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_programs import controller_manager

from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.auth.service_accounts import ISSUER
from lockstep.kube.crds import ensure_crds

# What the embedded server does itself.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)


class Reference(KubeApiServer):
    """kube-apiserver with every usual admission plugin but those that need more controllers."""

    without_plugins: ClassVar[str] = "TaintNodesByCondition,StorageObjectInUseProtection"

    def _options(self, pki: Pki) -> list[str]:
        issued = "--service-account-issuer="
        given = [option for option in super()._options(pki) if not option.startswith(issued)]
        return [f"{issued}{ISSUER}", *given]


@contextmanager
def both(directory: Path) -> Iterator[tuple[ApiServer, ApiServer]]:
    """Run the embedded server and kube-apiserver with the controllers that make it comparable."""
    ours, theirs = ApiServer(directory / "embedded"), Reference(directory / "kubernetes")
    controllers = None
    try:
        theirs.start()
        controllers = controller_manager(theirs, CONTROLLERS).start()
        ours.start()
        asyncio.run(_add_kinds(ours))
        yield ours, theirs
    finally:
        ours.kill()
        if controllers is not None:
            controllers.kill()
        theirs.kill()


async def _add_kinds(server: ApiServer) -> None:
    async with server.client() as client:
        await ensure_crds(client)
