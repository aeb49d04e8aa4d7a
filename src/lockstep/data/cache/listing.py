"""Listings that give every key as it is, also those that no path can stand for.

The store library refuses a whole page of a listing for one key such as ``x/../../etc``, and takes
``/a`` for ``a``. The manifest needs the true keys, to name the odd ones and to serve the rest.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit
from xml.etree.ElementTree import Element, ParseError, fromstring

from lockstep.api.backoff import Backoff, Pauses
from lockstep.data.core.manifest import Found

_TRIES: Final = 5
_PAUSES: Final = Backoff(initial=0.4, cap=5.0, jitter=0.2)
_TIMEOUT: Final = 60.0
_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_LONGEST: Final = 32 << 20
"""Bytes of a page, which holds a thousand keys of at most 1,024 bytes."""


def _opener() -> urllib.request.OpenerDirector:
    """Return what asks over HTTP alone: the endpoint is a tenant's word, and names no file here.

    It follows no redirection: the signature is for the host that was asked.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class ListingFailed(Exception):
    """A store does not list; *code* is its HTTP status, 0 where it gave none."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def s3_keys(uri: str, options: Mapping[str, str], secrets: Mapping[str, str]) -> list[Found]:
    """Return the objects below *uri* (``s3://BUCKET/PREFIX``); bytes beyond UTF-8 are surrogates.

    Raises:
        ListingFailed: when the store refuses, or does not answer five tries.
    """
    parts = urlsplit(uri)
    region = options.get("region", "us-east-1")
    endpoint = options.get("endpoint") or f"https://s3.{region}.amazonaws.com"
    prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
    query = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
    found: list[Found] = []
    while True:
        text = "&".join(f"{quote(k)}={quote(v, safe='')}" for k, v in sorted(query.items()))
        page = _page(f"{endpoint.rstrip('/')}/{parts.netloc}?{text}", region, secrets)
        encoded = (page.findtext("{*}EncodingType") or "") == "url"
        listed = (_found(one, len(prefix), encoded) for one in page.iterfind("{*}Contents"))
        found += (one for one in listed if one.key)
        query["continuation-token"] = page.findtext("{*}NextContinuationToken") or ""
        if page.findtext("{*}IsTruncated") != "true" or not query["continuation-token"]:
            return found


def _found(one: Element, prefix: int, encoded: bool) -> Found:
    key = one.findtext("{*}Key") or ""
    if encoded:
        key = unquote(key.replace("+", " "), errors="surrogateescape")
    tag = one.findtext("{*}ETag") or ""
    try:
        changed = datetime.fromisoformat(one.findtext("{*}LastModified") or "1970-01-01T00:00:00Z")
        size = int(one.findtext("{*}Size") or 0)
    except ValueError as error:
        raise ListingFailed(0, f"the store lists {key[:100]!r} with {error}") from error
    return Found(key[prefix:], size, tag, changed.timestamp())


def _page(url: str, region: str, secrets: Mapping[str, str]) -> Element:
    pauses = Pauses(_PAUSES)
    for left in reversed(range(_TRIES)):
        try:
            # Its opener knows HTTP alone.
            request = urllib.request.Request(url, headers=_signed(url, region, secrets))  # noqa: S310
            with _opener().open(request, timeout=_TIMEOUT) as answer:
                text = answer.read(_LONGEST + 1)
            if len(text) > _LONGEST:
                raise ListingFailed(0, f"a page of the listing is longer than {_LONGEST} bytes")
            # The parser reads no entity from elsewhere, and expat bounds those inside the text.
            return fromstring(text)  # noqa: S314
        except urllib.error.HTTPError as error:
            words = f"the store answers the listing with status code: {error.code} {error.reason}"
            if (error.code < 500 and error.code != 429) or not left:
                raise ListingFailed(error.code, words) from error
        except (OSError, HTTPException, ParseError, ValueError) as error:
            if not left:
                raise ListingFailed(0, f"the store does not list: {error}") from error
        time.sleep(pauses.failed())
    raise AssertionError("the last try raises or returns")


def _signed(url: str, region: str, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an AWS signature, version 4; none for a request without a key."""
    if "access_key_id" not in secrets or "secret_access_key" not in secrets:
        return {}
    parts, now = urlsplit(url), datetime.now(UTC)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": stamp}
    if token := secrets.get("session_token"):
        headers["x-amz-security-token"] = token
    names = ";".join(headers)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    asked = "\n".join(["GET", parts.path, parts.query, *lines, "", names, _EMPTY])
    scope = f"{day}/{region}/s3/aws4_request"
    digest = hashlib.sha256(asked.encode()).hexdigest()
    key = f"AWS4{secrets['secret_access_key']}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    mark = hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256")
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={secrets['access_key_id']}/{scope}, "
        f"SignedHeaders={names}, Signature={mark.hex()}"
    )
    del headers["host"]
    return headers


def directory_keys(place: Path, head: Callable[[str], Any]) -> list[Found]:
    """Return the files below *place*; *head* asks the store library for one that it can name."""
    found = []
    for key in _names(place):
        try:
            meta = head(key)
        except Exception:  # the library cannot name it, or it is gone
            found.append(Found(key, 0, "", 0.0))
            continue
        tag, changed = meta["e_tag"] or "", meta["last_modified"].timestamp()
        found.append(Found(key, meta["size"], tag, changed))
    return found


def _names(place: Path) -> Iterator[str]:
    seen = set[tuple[int, int]]()
    for above, below, names in os.walk(place, followlinks=True):
        known = os.stat(above)  # noqa: PTH116  *above* may be no UTF-8
        if (known.st_dev, known.st_ino) in seen:  # a link leads back
            below.clear()
            continue
        seen.add((known.st_dev, known.st_ino))
        start = os.path.relpath(above, place)
        yield from (name if start == "." else f"{start}/{name}" for name in names)
