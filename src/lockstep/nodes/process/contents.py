"""Following the ConfigMaps and Secrets that volumes are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api.code import CODE_LABEL
from lockstep.api.core import CONFIG_MAPS, SECRETS
from lockstep.api.resource import Resource
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.nodes.process.environment import referenced
from lockstep.nodes.process.spec import Pod


@dataclass(frozen=True, slots=True)
class _Reader:
    namespace: str
    names: dict[str, frozenset[str]]
    changed: Callable[[], None]


class Contents:
    """Tells pods when an object changes that one of their volumes is made of.

    A namespace is followed from the first pod on that has such a volume.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._readers: dict[str, _Reader] = {}
        self._followed: dict[tuple[str, str], asyncio.Task[None]] = {}

    def follow(self, pod: Pod, changed: Callable[[], None]) -> None:
        """Call *changed* whenever an object changes that *pod* refers to."""
        maps, secrets = referenced(pod)
        names = {CONFIG_MAPS.plural: maps, SECRETS.plural: secrets}
        meta = pod.metadata
        self._readers[meta.uid] = _Reader(meta.namespace, names, changed)
        for resource in (CONFIG_MAPS, SECRETS):
            if names[resource.plural]:
                self._start(resource, meta.namespace)

    def forget(self, uid: str) -> None:
        """Stop telling the pod *uid*."""
        self._readers.pop(uid, None)

    def close(self) -> None:
        """Stop following."""
        for task in self._followed.values():
            task.cancel()

    def _start(self, resource: Resource[Any], namespace: str) -> None:
        key = (resource.plural, namespace)
        if key in self._followed:
            return
        # Parts of code never change, and there may be many of them.
        informer: Informer[Any] = Informer(
            self._client, resource, namespace=namespace, label_selector=f"!{CODE_LABEL}"
        )
        informer.subscribe(lambda change: self._tell(resource.plural, change))
        self._followed[key] = asyncio.ensure_future(informer.run())

    def _tell(self, plural: str, change: Change[Any]) -> None:
        meta = change.object.metadata
        for reader in list(self._readers.values()):
            if reader.namespace == meta.namespace and meta.name in reader.names[plural]:
                reader.changed()
