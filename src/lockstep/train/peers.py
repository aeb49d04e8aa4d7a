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
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import BinaryIO

from lockstep.train.memory import Memory
from lockstep.train.segment import Segment, Split, Whole
from lockstep.train.state import Json

Make = Callable[[int, int, Split], Segment]
"""Makes the segment for a copy, of the bytes of a slot, the layout's checksum, and the split."""

NEWEST = -1
"""In place of a step."""
_TIMEOUT = 20.0
_TICK = 0.01
"""Seconds between two looks for a copy that a launcher waits for."""
_LONGEST_LINE = 4096
_LONGEST_COPY = 1 << 40
_CHUNK = 1 << 20
_SIGNATURE = 32


class NoCopy(Exception):
    """A launcher did not hand over the copy that was asked for; the message says why."""


OWN, SHARED = "own", "shared"
"""Parts of a copy: what is the rank's own, and what all ranks hold alike."""


@dataclass(frozen=True)
class Asked:
    """Which copy a launcher asks for."""

    step: int
    """A negative one stands for the newest that is newer than ``after``."""
    rank: int | None = None
    """Whose state it is; None for any rank's."""
    after: int = -1
    only: str = ""
    sum: int = 0
    """Checksum of the table of what all ranks share."""
    wait: float = 0.0
    """Seconds in which the copy may come."""
    nonce: str = ""


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
        found = self._wait_for(Asked(**{**request, "nonce": ""}))
        if found is None:
            return
        segment, whole = found
        split, only = segment.split, request["only"]
        begin, end = 0, whole.data + whole.size
        if only == SHARED:
            begin = end - split.shared
        elif only == OWN and split.shared:
            end -= split.shared
            split = Split(0, split.sum, split.shared)
        lengths = [whole.table, whole.plain, whole.data, end - whole.data]
        head: Json = {"bytes": end - begin, "layout": segment.layout, "step": whole.step}
        head |= {"sharded": self._memory.sharded, "lengths": lengths, "split": astuple(split)}
        line = json.dumps(head).encode() + b"\n"
        signed = _sign(self._key, nonce, line)
        connection.sendall(line)
        start = segment.start(whole.slot)
        known = segment.blocks.get(whole, [])
        for number, piece in enumerate(_blocks(segment, start + begin, start + end)):
            block = hashlib.sha256(piece).digest()
            if known and known[number] != block:
                sys.stderr.write(
                    f"lockstep-run: block {number} of step {whole.step}, kept for another pod, has "
                    "changed in this memory: the copy no longer counts\n"
                )
                segment.drop(whole)
                return
            signed.update(block)
            connection.sendall(piece)
        # Only what was not written over meanwhile is signed.
        if whole in segment.whole():
            connection.sendall(signed.digest())

    def _wait_for(self, asked: Asked) -> tuple[Segment, Whole] | None:
        until = time.monotonic() + min(asked.wait, _TIMEOUT / 2)
        while True:
            found = self._memory.find(asked.step, asked.rank, asked.after)
            if found is not None and asked.only == SHARED and found[0].split.sum != asked.sum:
                return None
            if found is not None or time.monotonic() >= until:
                return found
            time.sleep(_TICK)


@contextlib.contextmanager
def _answer(address: str, key: bytes, asked: Asked) -> Iterator[tuple[BinaryIO, hmac.HMAC, Json]]:
    """Yield the bytes that come, what they are signed with, and what they are.

    Raises:
        NoCopy: when nothing comes.
    """
    host, _, port = address.rpartition(":")
    nonce = os.urandom(16).hex()
    try:
        with socket.create_connection((host, int(port)), _TIMEOUT) as connection:
            lines = connection.makefile("rb")
            theirs = lines.readline(_LONGEST_LINE).rstrip(b"\n")
            text = json.dumps({**asdict(asked), "nonce": nonce}).encode()
            signature = _sign(key, theirs, text).hexdigest().encode()
            connection.sendall(text + b" " + signature + b"\n")
            line = lines.readline(_LONGEST_LINE)
            if not line:
                raise NoCopy(f"{address} has no copy of step {asked.step} for this launcher")
            yield lines, _sign(key, nonce.encode(), line), json.loads(line)
    except (OSError, ValueError, KeyError) as error:
        raise NoCopy(f"{address}: {error}") from error


def fetch(
    address: str,
    key: bytes,
    asked: Asked,
    make: Make,
    *,
    others: Sequence[str] = (),
    good: Callable[[], bool] | None = None,
) -> Json:
    """Get the copy that is *asked* for from the launcher at *address*; return what it is.

    It goes into the segment that *make* makes. If the launcher holds only what is a rank's own, the
    rest comes from one of the *others*. While *good* says no, nothing that has come counts.

    Raises:
        NoCopy: when it was not handed over whole.
    """
    began = 0.0
    with _answer(address, key, asked) as (lines, signed, head):
        began, split, size = time.monotonic(), Split(*head["split"]), int(head["bytes"])
        absent = split.absent if others else 0
        if not 0 < size + absent <= _LONGEST_COPY:
            raise NoCopy(f"{address}: a copy of {size + absent} bytes")
        whole = Split(absent, split.sum) if absent else split
        segment = make(size + absent, int(head["layout"]), whole)
        slot = segment.begin()
        start = segment.start(slot)
        own = _blocks(segment, start, start + size)
        blocks = _receive(lines, signed, own)
    if absent:
        shared = Asked(int(head["step"]), only=SHARED, sum=split.sum)
        _rest(others, key, shared, _blocks(segment, start + size, start + size + absent))
    if good is not None and not good():
        raise NoCopy(f"{address}: the copy is of ranks that have ended")
    table, plain, data, length = head["lengths"]
    segment.end(slot, int(head["step"]), 0, (table, plain, data, length + absent))
    present = segment.whole()
    kept = {one: known for one, known in segment.blocks.items() if one in present}
    segment.blocks = {**kept, **{one: blocks for one in present if one.slot == slot and not absent}}
    return {**head, "seconds": time.monotonic() - began}


def _rest(others: Sequence[str], key: bytes, asked: Asked, room: Sequence[memoryview]) -> None:
    """Get what all ranks hold alike into *room*, from one of the *others*."""
    why = ""
    for address in others:
        try:
            with _answer(address, key, asked) as (lines, signed, head):
                if int(head["bytes"]) != (size := sum(map(len, room))):
                    raise NoCopy(f"{address} shares {head['bytes']} bytes, not {size}")
                _receive(lines, signed, room)
                return
        except NoCopy as error:
            why = str(error)
    raise NoCopy(f"what all ranks share is missing: {why}")


def _receive(lines: BinaryIO, signed: hmac.HMAC, room: Sequence[memoryview]) -> list[bytes]:
    """Fill *room* with what comes; return a checksum of each block."""
    found = []
    for piece in room:
        if lines.readinto(piece) != len(piece):  # type: ignore[attr-defined]  # a buffered reader
            raise NoCopy("the connection ended before the copy did")
        found.append(hashlib.sha256(piece).digest())
        signed.update(found[-1])
    if not hmac.compare_digest(signed.digest(), lines.read(_SIGNATURE)):
        raise NoCopy("the copy is not what the other launcher signed")
    return found


def _blocks(segment: Segment, start: int, end: int) -> list[memoryview]:
    room = memoryview(segment.map)
    return [room[at : min(at + _CHUNK, end)] for at in range(start, end, _CHUNK)]


def _sign(key: bytes, nonce: bytes, text: bytes) -> hmac.HMAC:
    return hmac.new(key, nonce + b"\n" + text, hashlib.sha256)
