"""Sources that fsspec reads: schemes for which the store library has nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from lockstep.api.dataset_cache import CacheMount
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.core.manifest import Entry, Found

_TAGS: Final = ("ETag", "etag", "md5", "checksum", "blob_id", "oid", "uid")
"""What file systems call that by which a changed file is known."""
_TIMES: Final = ("mtime", "LastModified", "last_modified", "modified", "created")


class OtherSource:
    """One mount's source, read through fsspec in threads."""

    def __init__(self, mount: CacheMount, secrets: Mapping[str, str]) -> None:
        import fsspec

        self.uri = mount.uri
        scheme = urlsplit(mount.uri).scheme
        options = {**mount.options, **secrets}
        try:
            self._fs, self._root = fsspec.core.url_to_fs(
                mount.uri, skip_instance_cache=True, use_listings_cache=False, **options
            )
        except ImportError as error:
            text = f"{mount.uri}: {scheme}:// needs a package on the node: {error}"
            raise SourceFailed("SourceUnusable", text) from error
        except Exception as error:
            raise SourceFailed("SourceUnusable", f"{mount.uri}: {_words(error)}") from error

    async def list(self) -> list[Found]:
        """Return what the source holds.

        Raises:
            SourceFailed: when it cannot be listed.
        """
        try:
            found = await asyncio.to_thread(self._fs.find, self._root, detail=True)
        except Exception as error:
            raise self._failed(error, listing=True) from error
        if not found:
            raise SourceFailed("SourceMissing", f"{self.uri}: there is nothing")
        above = self._root.rstrip("/")
        return [
            Found(
                path.removeprefix(above).strip("/"),
                int(info.get("size") or 0),
                _tag(info),
                _time(info),
            )
            for path, info in sorted(found.items())
            if path != self._root
        ]

    async def read(self, entry: Entry, start: int, end: int) -> bytes:
        """Return the bytes *start* to *end* of the very file that *entry* names.

        Raises:
            SourceFailed: when the file is another now, or does not come whole.
        """
        path = f"{self._root.rstrip('/')}/{entry.key}"
        try:
            info = await asyncio.to_thread(self._fs.info, path)
            same = int(info.get("size") or 0) == entry.size and _tag(info) == entry.etag
            if not same or _time(info) != entry.mtime:
                text = f"{self.uri}: {entry.key} is not the file any more that the version has"
                raise SourceFailed("SourceChanged", text)
            data: bytes = await asyncio.to_thread(self._fs.cat_file, path, start=start, end=end)
        except SourceFailed:
            raise
        except FileNotFoundError as error:
            text = f"{self.uri}: {entry.key} is not there any more"
            raise SourceFailed("SourceChanged", text) from error
        except Exception as error:
            raise self._failed(error) from error
        if len(data) != end - start:
            raise SourceFailed(
                "SourceCutShort", f"{self.uri}: {entry.key} gave {len(data)} of {end - start} bytes"
            )
        return data

    def _failed(self, error: Exception, *, listing: bool = False) -> SourceFailed:
        if isinstance(error, PermissionError):
            reason = "SourceRefused"
        elif listing and isinstance(error, FileNotFoundError):
            reason = "SourceMissing"
        else:
            reason = "SourceUnreachable"
        return SourceFailed(reason, f"{self.uri}: {_words(error)}")


def _tag(info: Mapping[str, Any]) -> str:
    return next((str(info[name]) for name in _TAGS if info.get(name)), "")


def _time(info: Mapping[str, Any]) -> float:
    value = next((info[name] for name in _TIMES if info.get(name)), 0.0)
    if isinstance(value, datetime):
        return value.timestamp()
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().partition("\n")[0][:300]
