"""``python -m lockstep.serve.fetch URI DIRECTORY``: bring a model into its pod."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

CHUNK = 8 << 20
TIMEOUT = 60.0
HUB = "https://huggingface.co"


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
    if parts.scheme == "hf":
        return _hub(uri, directory)
    if parts.scheme != "s3":
        raise FetchError(f"{uri}: known are s3, hf, http and https")
    return _s3(parts.netloc, parts.path.strip("/"), directory, uri)


def _http(uri: str, target: Path, headers: Mapping[str, str] = MappingProxyType({})) -> int:
    written = 0
    request = urllib.request.Request(uri)  # noqa: S310  fetch() has looked at the scheme
    for header, value in headers.items():
        # A hub sends to another host for large files: that host must not get the user's token.
        request.add_unredirected_header(header, value)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, target.open("wb") as file:  # noqa: S310
            while data := answer.read(CHUNK):
                written += file.write(data)
            stated = answer.headers.get("Content-Length")
    except (OSError, HTTPException) as error:
        raise FetchError(f"{uri}: {error}") from error
    if stated is not None and written != int(stated):
        raise FetchError(f"{uri}: the connection broke after {written} of {stated} bytes")
    return written


def _hub(uri: str, directory: Path) -> int:
    """Fetch all files of ``hf://ORG/MODEL``, or of ``hf://ORG/MODEL:REVISION``.

    ``HF_ENDPOINT`` names another hub than Hugging Face's, ``HF_TOKEN`` opens gated models.
    """
    name, _, revision = uri.removeprefix("hf://").strip("/").partition(":")
    if len(name.split("/")) != 2 or not all(name.split("/")):
        raise FetchError(f"{uri}: write hf://ORG/MODEL or hf://ORG/MODEL:REVISION")
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    token = os.environ.get("HF_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    revision = quote(revision or "main", safe="")
    listing = f"{hub}/api/models/{quote(name)}/revision/{revision}"
    request = urllib.request.Request(listing, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            told = json.load(answer)
        files = [str(one["rfilename"]) for one in told["siblings"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        hint = "; for a gated model, set HF_TOKEN in the predictor's env" if not token else ""
        raise FetchError(f"{uri}: {listing}: {error}{hint}") from error
    # All files are of the commit that was listed, also when the branch moves meanwhile.
    commit = quote(str(told.get("sha") or ""), safe="") or revision
    written = 0
    for file in files:
        target = directory / file
        if not target.resolve().is_relative_to(directory.resolve()):
            raise FetchError(f"{uri}: {file} leads out of the model's directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        written += _http(f"{hub}/{quote(name)}/resolve/{commit}/{quote(file)}", target, headers)
    if not files:
        raise FetchError(f"{uri}: there is nothing")
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
