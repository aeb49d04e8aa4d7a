"""Artefacts in an object store: up in parts, down in a stream, each with its digest."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lockstep.pipelines.core.told import ARTEFACTS


class FilesError(Exception):
    """Files cannot be fetched or kept; the message says which and why."""


CHUNK: Final = 8 << 20
TIMEOUT: Final = 60.0
STORES: Final = ("s3", "minio", "gs")
"""Schemes that are written to; http and https are read from too."""


def fetch(uri: str, path: Path) -> str:
    """Write what is at *uri* to *path*, a file or a directory; return its digest.

    Raises:
        FilesError: when there is nothing or it cannot be read.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return _download(uri, path)
    import obstore
    from obstore.exceptions import BaseError

    store, key = _open(uri)
    try:
        found = [one["path"] for page in obstore.list(store, key) for one in page]
        if not found:
            return _one(store, key, path)
        sums = {name: _one(store, name, _below(path, key, name)) for name in found}
    except FileNotFoundError:
        raise FilesError(f"{uri}: there is nothing") from None
    except BaseError as error:
        raise FilesError(f"{uri}: {_first(error)}") from error
    if list(sums) == [key]:
        return sums[key]
    return _together({name[len(key) :].lstrip("/"): value for name, value in sums.items()})


def upload(path: Path, uri: str) -> tuple[str, int]:
    """Write the file or directory *path* to *uri*; return its digest and its size in bytes.

    Raises:
        FilesError: when it cannot be written.
    """
    from obstore.exceptions import BaseError

    store, key = _open(uri)
    try:
        if not path.is_dir():
            return _put(store, key, path)
        sums: dict[str, str] = {}
        size = 0
        for one in sorted(path.rglob("*")):
            if one.is_file() and one.resolve().is_relative_to(path.resolve()):
                name = one.relative_to(path).as_posix()
                sums[name], more = _put(store, f"{key}/{name}", one)
                size += more
    except BaseError as error:
        raise FilesError(f"{uri}: {_first(error)}") from error
    return _together(sums), size


class _Digest:
    """SHA-256 of a stream, computed beside its transfer, one piece behind."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self._pool = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def update(self, data: Any) -> None:
        """Take the next piece, once the one before it is done."""
        if self._last is not None:
            self._last.result()
        self._last = self._pool.submit(self._sum.update, data)

    def text(self) -> str:
        """Return the sum of all pieces, as ``sha256:HEX``."""
        self._pool.shutdown()
        return f"sha256:{self._sum.hexdigest()}"


def _put(store: Any, key: str, path: Path) -> tuple[str, int]:
    import obstore

    digest, size = _Digest(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal size
        with path.open("rb") as file:
            while data := file.read(CHUNK):
                digest.update(data)
                size += len(data)
                yield data

    if path.stat().st_size <= CHUNK:
        obstore.put(store, key, b"".join(chunks()), use_multipart=False)
    else:
        obstore.put(store, key, chunks(), chunk_size=CHUNK)
    return digest.text(), size


def _one(store: Any, key: str, path: Path) -> str:
    import obstore

    digest = _Digest()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for data in obstore.get(store, key).stream(min_chunk_size=CHUNK):
            digest.update(data)
            file.write(data)
    return digest.text()


def _together(sums: dict[str, str]) -> str:
    text = "".join(f"{name}\0{value}\n" for name, value in sorted(sums.items()))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _below(path: Path, key: str, name: str) -> Path:
    if name == key:
        return path
    target = path / name[len(key) :].lstrip("/")
    if not target.resolve().is_relative_to(path.resolve()):
        raise FilesError(f"{name} leads out of its directory")
    return target


def _download(uri: str, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(uri, timeout=TIMEOUT) as answer, path.open("wb") as file:  # noqa: S310
            while data := answer.read(CHUNK):
                digest.update(data)
                file.write(data)
    except OSError as error:
        raise FilesError(f"{uri}: {error}") from error
    return f"sha256:{digest.hexdigest()}"


def _open(uri: str) -> tuple[Any, str]:
    """Return the store that *uri* is in, and its key there; how it is reached is in variables."""
    from obstore.store import GCSStore, LocalStore, S3Store

    parts = urlsplit(uri)
    if parts.scheme == "minio" and Path(ARTEFACTS).is_dir():
        return LocalStore(ARTEFACTS), f"{parts.netloc}/{parts.path.strip('/')}"
    if parts.scheme not in STORES:
        raise FilesError(f"{uri}: known are {', '.join(STORES)}, http and https")
    options: Any = {}
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["allow_http"] = True
    key = parts.path.strip("/")
    if parts.scheme == "gs":
        return GCSStore(parts.netloc), key
    return S3Store(parts.netloc, client_options=options), key


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
