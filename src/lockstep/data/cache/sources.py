"""Sources of datasets: object stores, web servers and directories, read by obstore."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, HTTPStore, LocalStore, S3Store

from lockstep.api.dataset_cache import CacheMount
from lockstep.api.wire import Json
from lockstep.data.cache.directories import Directories
from lockstep.data.cache.listing import ListingFailed, directory_keys, s3_keys
from lockstep.data.core import settings
from lockstep.data.core.manifest import Entry, Found

_RETRY: Final[Any] = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_CLIENT: Final[Json] = {"connect_timeout": "5s", "timeout": "60s"}
_S3: Final = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
}
_LISTED_AT_ONCE: Final = 1000
_ALL: Final = Directories()
_OLD_KEY: Final = re.compile(r"\b(Expired|Invalid)Token\b|\bTokenRefreshRequired\b")
"""What S3 says with status 400 of a key that was valid once."""


class SourceFailed(Exception):
    """A source does not give what it should; *reason* is one word, the message says which."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Source:
    """One mount's source."""

    def __init__(
        self,
        mount: CacheMount,
        secrets: Mapping[str, str],
        directories: Directories = _ALL,
    ) -> None:
        self.uri = mount.uri
        self._reached = mount, secrets
        self._store = open_store(mount, secrets, directories)
        self._directories = directories

    async def _listed(self) -> list[Found]:
        found = []
        async for batch in obstore.list(self._store, chunk_size=_LISTED_AT_ONCE):
            for one in batch:
                changed = one["last_modified"].timestamp()
                found.append(Found(one["path"], one["size"], one["e_tag"] or "", changed))
        return found

    async def list(self) -> list[Found]:
        """Return what the source holds.

        Raises:
            SourceFailed: when it cannot be listed.
        """
        try:
            if isinstance(self._store, S3Store):
                mount, secrets = settings.expanded(*self._reached)
                return await asyncio.to_thread(s3_keys, mount.uri, mount.options, secrets)
            return await _shown(self._store, self._directories, await self._listed())
        except exceptions.InvalidPathError as error:
            if isinstance(self._store, LocalStore):
                head = functools.partial(obstore.head, self._store)
                place = Path(str(self._store.prefix))
                found = await asyncio.to_thread(directory_keys, place, head)
                return await _shown(self._store, self._directories, found)
            text = f"{self.uri}: {_first_line(error)}; rename or delete this object"
            raise SourceFailed("SourceUnusable", text) from error
        except (exceptions.BaseError, OSError, ListingFailed) as error:
            raise self._failed(error, listing=True) from error

    async def read(self, entry: Entry, start: int, end: int) -> Any:
        """Return the bytes *start* to *end* of the very object that *entry* names.

        Raises:
            SourceFailed: when the object is another now, or does not come whole.
        """
        options: Any = {"if_match": entry.etag} if entry.etag else {}
        if (start, end) != (0, entry.size):
            options["range"] = (start, end)
        if isinstance(self._store, LocalStore) and not self._directories.shown_below(
            Path(str(self._store.prefix)), [entry.key]
        ):
            raise self._changed(entry)
        try:
            result = await obstore.get_async(self._store, entry.key, options=options or None)
            if result.meta["size"] != entry.size:
                raise self._changed(entry)
            data = await result.bytes_async()
        except (exceptions.BaseError, OSError) as error:
            if isinstance(error, exceptions.PreconditionError | FileNotFoundError):
                raise self._changed(entry) from error
            raise self._failed(error) from error
        if len(data) != end - start:
            raise SourceFailed(
                "SourceCutShort", f"{self.uri}: {entry.key} gave {len(data)} of {end - start} bytes"
            )
        return data

    def _changed(self, entry: Entry) -> SourceFailed:
        text = f"{self.uri}: {entry.key} is not the object any more that the version was made of"
        return SourceFailed("SourceChanged", text)

    def _failed(self, error: Exception, *, listing: bool = False) -> SourceFailed:
        # A listing that fails is of no class of its own; its status stands in the words.
        answered = re.search(r"status code: (\d+)", str(error))
        code = answered[1] if answered else ""
        refused = exceptions.PermissionDeniedError | exceptions.UnauthenticatedError
        if isinstance(error, refused) or code in ("401", "403") or _OLD_KEY.search(str(error)):
            names = sorted({one.name for one in self._reached[0].secrets.values()})
            key = f"the key of Secret {', '.join(names)}" if names else "a request without a key"
            text = f"{self.uri} refuses {key}: {_first_line(error)}"
            return SourceFailed("SourceRefused", text)
        if listing and (isinstance(error, FileNotFoundError) or code == "404"):
            reason = "SourceMissing"
        else:
            reason = "SourceUnreachable"
        return SourceFailed(reason, f"{self.uri}: {_first_line(error)}")


async def _shown(store: Any, directories: Directories, found: list[Found]) -> list[Found]:
    """Return *found* without files that links lead to and that no dataset may show."""
    if not isinstance(store, LocalStore):
        return found
    keys = [one.key for one in found]
    shown = await asyncio.to_thread(directories.shown_below, Path(str(store.prefix)), keys)
    return [one for one in found if one.key in shown]


def open_store(
    mount: CacheMount, secrets: Mapping[str, str], directories: Directories = _ALL
) -> Any:
    """Return the store of *mount*, opened with *secrets*.

    Raises:
        SourceFailed: when it cannot be.
    """
    try:
        return _open(*settings.expanded(mount, secrets), directories)
    except (exceptions.BaseError, ValueError, FileNotFoundError) as error:
        raise SourceFailed("SourceUnusable", f"{mount.uri}: {_first_line(error)}") from error


def _open(mount: CacheMount, secrets: Mapping[str, str], directories: Directories) -> Any:
    parts = urlsplit(mount.uri)
    prefix = parts.path.strip("/")
    endpoint = mount.options.get("endpoint", "")
    client: Any = {**_CLIENT, **({"allow_http": True} if endpoint.startswith("http://") else {})}
    if parts.scheme in ("local", "file"):
        return LocalStore(directories.source(Path("/", parts.netloc, prefix)))
    if parts.scheme in ("http", "https"):
        client["allow_http"] = parts.scheme == "http"
        return HTTPStore.from_url(mount.uri, client_options=client, retry_config=_RETRY)
    if parts.scheme == "gs":
        service = secrets.get("service_account_key")
        given: Any = {"service_account_key": service} if service else {"skip_signature": True}
        if endpoint:
            given["google_base_url"] = endpoint
        return GCSStore(
            parts.netloc,
            prefix=prefix or None,
            config=given,
            client_options=client,
            retry_config=_RETRY,
        )
    if parts.scheme in ("az", "abfs", "abfss"):
        return _azure(mount, secrets, client)
    config: Any = {_S3[name]: value for name, value in secrets.items() if name in _S3}
    if not config:
        # Never with the rights of the machine that the cache runs on.
        config["aws_skip_signature"] = True
    if endpoint:
        config["aws_endpoint"] = endpoint
    config["aws_region"] = mount.options.get("region", "us-east-1")
    config["aws_virtual_hosted_style_request"] = False
    return S3Store(
        parts.netloc,
        prefix=prefix or None,
        config=config,
        client_options=client,
        retry_config=_RETRY,
    )


def _azure(mount: CacheMount, secrets: Mapping[str, str], client: Any) -> AzureStore:
    """Open ``az://CONTAINER/PATH``, or ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH``."""
    parts = urlsplit(mount.uri)
    container, _, host = parts.netloc.partition("@")
    config: Any = {"azure_storage_account_name": mount.options.get("account_name", "")}
    if host:
        config["azure_storage_account_name"] = host.partition(".")[0]
    if not config["azure_storage_account_name"]:
        raise ValueError("options.account-name is needed: the name of the storage account")
    if key := secrets.get("account_key"):
        config["azure_storage_account_key"] = key
    elif sas := secrets.get("sas_token"):
        config["azure_storage_sas_key"] = sas
    else:
        # Never with the rights of the machine that the cache runs on.
        config["azure_skip_signature"] = True
    if endpoint := mount.options.get("endpoint"):
        config["azure_endpoint"] = endpoint
    return AzureStore(
        container,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options=client,
        retry_config=_RETRY,
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
