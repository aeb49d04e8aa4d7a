"""Device claims, where the server has them: slices, classes and claims reach the state here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from lockstep.api.claims import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.scheduler.core.state.cluster import Cluster

log = logging.getLogger(__name__)


class ClaimSource:
    """Gives the state what there is of ``resource.k8s.io/v1``."""

    def __init__(self, client: Client, cluster: Cluster, wake: Callable[[], None]) -> None:
        self._cluster, self._wake = cluster, wake
        book = cluster.device_claims
        self._followed: list[tuple[Informer[Any], Callable[[Any], None], Callable[..., None]]] = [
            (Informer(client, RESOURCE_SLICES, optional=True), book.set_slice, book.remove_slice),
            (Informer(client, DEVICE_CLASSES, optional=True), book.set_class, book.remove_class),
            (Informer(client, RESOURCE_CLAIMS, optional=True), book.set_claim, book.remove_claim),
        ]

    async def run(self, known: asyncio.Event) -> None:
        """Follow them until cancelled; *known* is set once all that there are count."""
        cancels = [
            informer.subscribe(self._handler(take, forget))
            for informer, take, forget in self._followed
        ]
        following = [asyncio.create_task(informer.run()) for informer, *_ in self._followed]
        try:
            for informer, *_ in self._followed:
                await informer.wait_synced()
            known.set()
            self._wake()
            await asyncio.gather(*following)
        finally:
            for cancel in cancels:
                cancel()
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    def _handler(
        self, take: Callable[[Any], None], forget: Callable[..., None]
    ) -> Callable[[Change[Any]], None]:
        def handle(change: Change[Any]) -> None:
            if change.new is not None:
                try:
                    take(change.new)
                except ValueError as error:
                    meta = change.new.metadata
                    log.warning("%s %s cannot be read: %s", change.new.kind, meta.name, error)
            elif change.old is not None:
                meta = change.old.metadata
                forget(*((meta.namespace, meta.name) if meta.namespace else (meta.name,)))
            self._wake()

        return handle
