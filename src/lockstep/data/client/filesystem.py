"""``lockstep://NAMESPACE/DATASET/PATH`` for fsspec, and so for pandas, torch and others."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from lockstep.data.client.connection import Connection, Endpoint


class LockstepFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Datasets, read through the cache of a node; nothing can be written.

    *endpoints* names where datasets are read, by ``NAMESPACE/DATASET``. For others the cluster is
    asked, with *kubeconfig*, and a node that has most of the dataset is taken, or *node*.
    """

    protocol = "lockstep"
    root_marker = ""

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, str]] | None = None,
        kubeconfig: str | None = None,
        node: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._kubeconfig, self._node = kubeconfig, node
        self._known = {
            name: Connection(Endpoint(**one)) for name, one in dict(endpoints or {}).items()
        }

    def _connection(self, path: str) -> tuple[Connection, str, str]:
        """Return the line for *path*, the dataset that it names, and the path in it."""
        parts = self._strip_protocol(path).strip("/").split("/", 2)
        if len(parts) < 2:
            raise FileNotFoundError(errno.ENOENT, "write lockstep://NAMESPACE/DATASET/PATH", path)
        name = "/".join(parts[:2])
        if name not in self._known:
            self._known[name] = Connection(self._find(*parts[:2]))
        return self._known[name], name, parts[2] if len(parts) > 2 else ""

    def _find(self, namespace: str, dataset: str) -> Endpoint:
        return asyncio.run(_find(namespace, dataset, self._kubeconfig, self._node))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return what *path* is."""
        line, name, inside = self._connection(path)
        try:
            found = json.loads(line.get("list", inside))
        except OSError as error:
            raise _of_path(error, path) from error
        found.pop("children", None)
        return _named(name, found)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return what the directory *path* holds; a file holds itself."""
        line, name, inside = self._connection(path)
        try:
            found = json.loads(line.get("list", inside))
        except OSError as error:
            raise _of_path(error, path) from error
        listed = [_named(name, one) for one in found.pop("children", [found])]
        return listed if detail else sorted(one["name"] for one in listed)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes *start* to *end* of a file."""
        size = int(self.info(path)["size"])
        first = max(0, size + start) if start is not None and start < 0 else min(start or 0, size)
        last = size if end is None else size + end if end < 0 else min(end, size)
        line, _name, inside = self._connection(path)
        parts = []
        try:
            while first < last:
                parts.append(line.get("file", inside, (first, last)))
                first += len(parts[-1])
        except OSError as error:
            raise _of_path(error, path) from error
        return b"".join(parts)

    def modified(self, path: str) -> Any:
        """Return when a file was last changed at its source."""
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            raise OSError(errno.EROFS, "datasets are only read", path)
        options.pop("autocommit", None)
        return _File(self, path, mode, **options)


class _File(AbstractBufferedFile):  # type: ignore[misc]
    """A file of a dataset."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.cat_file(self.path, start, end)
        return found


def _named(dataset: str, found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "name": f"{dataset}/{found['name']}".rstrip("/")}


def _of_path(error: OSError, path: str) -> OSError:
    """Return *error* about *path*, of the class that its number has."""
    return OSError(error.errno or errno.EIO, error.strerror or str(error), path)


async def _find(namespace: str, dataset: str, kubeconfig: str | None, node: str | None) -> Endpoint:
    from lockstep.api.core import SECRETS
    from lockstep.api.dataset_cache import DATASET_CACHES
    from lockstep.kube.client import Client
    from lockstep.kube.config import ClusterConfig

    path = Path(kubeconfig) if kubeconfig else None
    async with Client(ClusterConfig.load(path)) as client:
        caches = [
            one
            for one in (await client.list(DATASET_CACHES, namespace)).items
            if one.spec.dataset == dataset and one.status.address and one.spec.token is not None
            if node is None or one.spec.node == node
        ]
        if not caches:
            raise FileNotFoundError(errno.ENOENT, f"no node serves {namespace}/{dataset}")
        best = max(caches, key=lambda one: one.status.cached_bytes)
        ref = best.spec.token
        assert ref is not None  # noqa: S101  those without were left out
        secret = await client.get(SECRETS, ref.name, namespace)
        owners = best.metadata.owner_references
        uid = owners[0].uid if owners else best.metadata.uid
        token = base64.b64decode(secret.data[ref.key]).decode()
        status = best.status
        return Endpoint(status.address, uid, token, status.version, status.certificate)
