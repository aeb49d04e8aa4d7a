"""Whole copies between launchers, over TCP, with the key of the job.

A request is one line of JSON with a nonce of the server's and signed by the key; the answer is a
line of JSON, the copy's bytes, and a signature over all of it and a nonce of the client's. So
neither side believes who lacks the key, and nothing that was kept from earlier counts. What is sent
is not hidden.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from lockstep.train.memory import Memory
from lockstep.train.segment import Segment

Json = dict[str, Any]

_TIMEOUT = 20.0
_LONGEST_LINE = 4096
_LONGEST_COPY = 1 << 40
_CHUNK = 1 << 20
_SIGNATURE = 32


class NoCopy(Exception):
    """A launcher did not hand over the copy that was asked for; the message says why."""


class Peers:
    """Hands the copies of *memory* to launchers of the same job."""

    def __init__(self, address: str, key: bytes, memory: Memory) -> None:
        self._key, self._memory = key, memory
        self._socket = socket.create_server((address, 0))
        host, port = self._socket.getsockname()[:2]
        self.address = f"{host}:{port}"

    def serve(self) -> None:
        """Answer for as long as the launcher lives; for a thread of its own."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._socket.close()

    def _one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            connection.settimeout(_TIMEOUT)
            nonce = os.urandom(16).hex()
            connection.sendall(nonce.encode() + b"\n")
            with connection.makefile("rb") as lines:
                text, signature = lines.readline(_LONGEST_LINE).rstrip(b"\n").rsplit(b" ", 1)
            wanted = _sign(self._key, nonce.encode(), text).hexdigest()
            if not hmac.compare_digest(wanted.encode(), signature):
                return
            request = json.loads(text)
            self._hand_over(connection, request["nonce"].encode(), request)

    def _hand_over(self, connection: socket.socket, nonce: bytes, request: Json) -> None:
        rank = request.get("rank")
        after = int(request.get("after", -1))
        found = self._memory.find(int(request["step"]), None if rank is None else int(rank), after)
        if found is None:
            return
        segment, whole = found
        start = segment.start(whole.slot)
        size = whole.data + whole.size
        head = {
            "bytes": size,
            "layout": segment.layout,
            "slot": segment.slot_bytes,
            "step": whole.step,
            "sharded": self._memory.sharded,
            "lengths": [whole.table, whole.plain, whole.data, whole.size],
        }
        line = json.dumps(head).encode() + b"\n"
        signed = _sign(self._key, nonce, line)
        connection.sendall(line)
        for at in range(start, start + size, _CHUNK):
            chunk = segment.map[at : min(at + _CHUNK, start + size)]
            signed.update(chunk)
            connection.sendall(chunk)
        # Only what was not written over meanwhile is signed.
        if whole in segment.whole():
            connection.sendall(signed.digest())


def fetch(
    address: str,
    key: bytes,
    step: int,
    make: Callable[[int, int], Segment],
    *,
    rank: int | None = None,
    after: int = -1,
) -> bool:
    """Get the copy of *step* from the launcher at *address* into the segment that *make* makes.

    *make* is told the bytes of a slot and the layout's checksum. Where ranks hold parts, it is that
    of *rank*; a negative *step* stands for the newest that is newer than *after*. Return whether it
    holds parts.

    Raises:
        NoCopy: when it was not handed over whole.
    """
    host, _, port = address.rpartition(":")
    nonce = os.urandom(16).hex()
    try:
        with socket.create_connection((host, int(port)), _TIMEOUT) as connection:
            lines = connection.makefile("rb")
            theirs = lines.readline(_LONGEST_LINE).rstrip(b"\n")
            asked = {"step": step, "nonce": nonce, "rank": rank, "after": after}
            text = json.dumps(asked).encode()
            signature = _sign(key, theirs, text).hexdigest().encode()
            connection.sendall(text + b" " + signature + b"\n")
            line = lines.readline(_LONGEST_LINE)
            if not line:
                raise NoCopy(f"{address} has no copy of step {step} for this launcher")
            head = json.loads(line)
            _receive(lines, _sign(key, nonce.encode(), line), head, make)
            return bool(head["sharded"])
    except (OSError, ValueError, KeyError) as error:
        raise NoCopy(f"{address}: {error}") from error


def _receive(
    lines: BinaryIO, signed: hmac.HMAC, head: Json, make: Callable[[int, int], Segment]
) -> None:
    size, slot_bytes = int(head["bytes"]), int(head["slot"])
    if not 0 < size <= slot_bytes <= _LONGEST_COPY:
        raise NoCopy(f"a copy of {size} bytes in a slot of {slot_bytes}")
    segment = make(slot_bytes, int(head["layout"]))
    slot = segment.begin()
    at, end = segment.start(slot), segment.start(slot) + size
    while at < end:
        chunk = lines.read(min(_CHUNK, end - at))
        if not chunk:
            raise NoCopy("the connection ended before the copy did")
        segment.map[at : at + len(chunk)] = chunk
        signed.update(chunk)
        at += len(chunk)
    if not hmac.compare_digest(signed.digest(), lines.read(_SIGNATURE)):
        raise NoCopy("the copy is not what the other launcher signed")
    table, plain, data, length = head["lengths"]
    segment.end(slot, int(head["step"]), 0, (table, plain, data, length))


def _sign(key: bytes, nonce: bytes, text: bytes) -> hmac.HMAC:
    return hmac.new(key, nonce + b"\n" + text, hashlib.sha256)
