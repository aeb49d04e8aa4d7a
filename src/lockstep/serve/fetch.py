"""``python -m lockstep.serve.fetch URI DIRECTORY``: bring a model into its pod."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHUNK = 8 << 20
TIMEOUT = 60.0


class FetchError(Exception):
    """A model cannot be fetched; the message says from where and why."""


def fetch(uri: str, directory: Path) -> int:
    """Write what is at *uri* below *directory*; return how many bytes.

    Raises:
        FetchError: when there is nothing, or it cannot be read.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return _http(uri, directory / Path(parts.path).name)
    if parts.scheme != "s3":
        raise FetchError(f"{uri}: known are s3, http and https")
    return _s3(parts.netloc, parts.path.strip("/"), directory, uri)


def _http(uri: str, target: Path) -> int:
    written = 0
    try:
        with urllib.request.urlopen(uri, timeout=TIMEOUT) as answer, target.open("wb") as file:  # noqa: S310
            while data := answer.read(CHUNK):
                written += file.write(data)
    except OSError as error:
        raise FetchError(f"{uri}: {error}") from error
    return written


def _settings() -> dict[str, Any]:
    """Return how the store is reached: KServe's ``storage-config``, else the usual variables."""
    text = os.environ.get("STORAGE_CONFIG", "")
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise FetchError("STORAGE_CONFIG is no JSON; see the Secret storage-config") from error
    names = {
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "endpoint_url": "endpoint",
        "region": "region",
    }
    settings = {ours: found[theirs] for theirs, ours in names.items() if found.get(theirs)}
    if str(settings.get("endpoint", "")).startswith("http://"):
        settings["allow_http"] = True
    if str(found.get("anonymous", "")).lower() == "true":
        settings["skip_signature"] = True
    return settings


def _s3(bucket: str, prefix: str, directory: Path, uri: str) -> int:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    settings = _settings()
    allow_http = settings.pop("allow_http", False)
    options: Any = {"allow_http": True} if allow_http else {}
    written = count = 0
    try:
        store = S3Store(bucket, client_options=options, **settings)
        for page in obstore.list(store, prefix or None):
            for one in page:
                name = _below(one["path"], prefix)
                target = directory / name
                if not target.resolve().is_relative_to(directory.resolve()):
                    raise FetchError(f"{uri}: {one['path']} leads out of the model's directory")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    for data in obstore.get(store, one["path"]).stream(min_chunk_size=CHUNK):
                        written += file.write(data)
                count += 1
    except BaseError as error:
        first = str(error).strip().splitlines()[0]
        raise FetchError(f"{uri}: {first}") from error
    if not count:
        raise FetchError(f"{uri}: there is nothing")
    return written


def _below(path: str, prefix: str) -> str:
    """Return an object's *path* below *prefix*, or its last part when it is that itself."""
    if prefix and path.startswith(prefix + "/"):
        return path[len(prefix) + 1 :]
    return path.rpartition("/")[2]


def main() -> None:
    """Fetch what the arguments name; end with 1 and a last line that says what is wrong."""
    if len(sys.argv) != 3:
        print("error: usage: python -m lockstep.serve.fetch URI DIRECTORY", file=sys.stderr)
        sys.exit(2)
    try:
        size = fetch(sys.argv[1], Path(sys.argv[2]))
    except (FetchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"fetched {size} bytes from {sys.argv[1]}")


if __name__ == "__main__":
    main()
