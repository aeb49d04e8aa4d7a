"""A small S3-like server of our own: chosen delay, bandwidth and faults, and counts of bytes.

It lists and gives ranges, nothing else; versitygw is the real one (``tests.support.s3``).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape


class RangeStore:
    """One bucket, ``bucket``; *fault* says for a key what to answer: a status, ``half`` or none."""

    def __init__(self, files: dict[str, bytes], host: str = "127.0.0.1") -> None:
        self.files = dict(files)
        self.delay = 0.0
        self.rate = 0.0
        """Bytes a second of all connections together; 0 is without a limit."""
        self.fault: Callable[[str], int | str | None] = lambda key: None
        self.sent: Counter[str] = Counter()
        """Bytes given by key."""
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._free_at = 0.0
        store = self

        class Handler(_Handler):
            bucket = store

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def total(self) -> int:
        return sum(self.sent.values())

    def pace(self, size: int) -> None:
        """Wait until *size* bytes may go out."""
        if not self.rate:
            return
        with self._lock:
            due = max(time.monotonic(), self._free_at)
            self._free_at = due + size / self.rate
        time.sleep(max(0.0, self._free_at - time.monotonic()))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: RangeStore

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/bucket").lstrip("/")
        if not key:
            self._list(parse_qs(parts.query).get("prefix", [""])[0])
            return
        store = self.bucket
        with store._lock:
            store.asked[key] += 1
        time.sleep(store.delay)
        fault = store.fault(key)
        data = store.files.get(key)
        if isinstance(fault, int):
            self._send(fault, b"", {})
        elif data is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
        elif self.headers.get("if-match") not in (None, etag(data)):
            self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>", {})
        else:
            self._give(key, data, half=fault == "half")

    def _give(self, key: str, data: bytes, *, half: bool) -> None:
        status, headers = 200, {"etag": etag(data), "last-modified": formatdate(1e9, usegmt=True)}
        part = data
        if span := self.headers.get("range"):
            low, _, high = span.removeprefix("bytes=").partition("-")
            part = data[int(low) : int(high) + 1]
            status = 206
            headers["content-range"] = f"bytes {low}-{int(low) + len(part) - 1}/{len(data)}"
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(part))}.items():
            self.send_header(name, value)
        self.end_headers()
        if half:
            self.wfile.write(part[: len(part) // 2])
            self.wfile.flush()
            self.close_connection = True
            return
        for start in range(0, len(part), 256 << 10):
            piece = part[start : start + (256 << 10)]
            self.bucket.pace(len(piece))
            self.wfile.write(piece)
        with self.bucket._lock:
            self.bucket.sent[key] += len(part)

    def _list(self, prefix: str) -> None:
        found = "".join(
            f"<Contents><Key>{quote(key, errors='surrogateescape')}</Key>"
            "<LastModified>2020-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(etag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in sorted(self.bucket.files.items())
            if key.startswith(prefix)
        )
        head = "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
        text = f"<?xml version='1.0'?><ListBucketResult>{head}{found}"
        self._send(200, f"{text}</ListBucketResult>".encode(), {"content-type": "application/xml"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
