"""Measures one pair of nodes on one rail: latency, rate in each direction, segments sent again.

The node that comes first in the check's list connects. A peer must prove that it knows the check's
token, against a number that is new each time, before anything is measured; then both take turns to
send. Everything has its limit of time, and one that talks nonsense is put off.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.network import Endpoint, Measured

CHUNK: Final = 1 << 20
PINGS: Final = 20
LONGEST_LINE: Final = 4096
RETRY: Final = 0.1
CONNECTING: Final = 3.0
"""Seconds in which a path must carry a connection; a peer that is busy takes it all the same."""
MOST_GREETED: Final = 64
"""Connections that may be saying who they are at the same time."""


class Refused(Exception):
    """The other end is not who it should be, or talks nonsense."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What both ends of a measurement know."""

    token: str
    seconds: float
    patience: float


class Listener:
    """Takes measurements on one address of one rail, one at a time, from the peer it waits for."""

    def __init__(self, terms: Terms, address: str, nic: str, rail: str) -> None:
        self._terms = terms
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _bind_to(self._socket, nic)
            self._socket.bind((address, 0))
            self._socket.listen(64)
        except OSError:
            self._socket.close()
            raise
        self.endpoint = Endpoint(
            rail=rail, nic=nic, address=address, port=int(self._socket.getsockname()[1])
        )
        self._waiting: dict[str, tuple[socket.socket, float]] = {}
        self._came = threading.Condition()
        self._closed = False
        self._greeted = threading.BoundedSemaphore(MOST_GREETED)
        threading.Thread(target=self._accept, name=f"rail {rail}", daemon=True).start()

    def measure(self, peer: str) -> Measured:
        """Wait for *peer* and measure with it; what goes wrong is in the result."""
        rail = self.endpoint.rail
        deadline = time.monotonic() + self._terms.patience
        with self._came:
            while peer not in self._waiting:
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    told = f"{peer} did not connect within {self._terms.patience:.0f} s"
                    return Measured(peer=peer, rail=rail, problem=told)
                self._came.wait(left)
            connection, _ = self._waiting.pop(peer)
        with connection:
            try:
                return _answering(connection, self._terms, peer, rail)
            except (OSError, Refused, ValueError, KeyError) as error:
                return Measured(peer=peer, rail=rail, problem=f"with {peer}: {error}")

    def close(self) -> None:
        """Take no more."""
        with self._came:
            self._closed = True
            for connection, _ in self._waiting.values():
                connection.close()
            self._waiting.clear()
            self._came.notify_all()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if not self._greeted.acquire(blocking=False):
                connection.close()
                continue
            thread = threading.Thread(target=self._greet, args=(connection,), daemon=True)
            thread.start()

    def _greet(self, connection: socket.socket) -> None:
        try:
            self._identify(connection)
        finally:
            self._greeted.release()

    def _identify(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(CONNECTING)
            nonce = secrets.token_hex(16)
            _send(connection, {"nonce": nonce})
            said = _receive(connection)
            peer = str(said.get("from", ""))
            if not hmac.compare_digest(
                str(said.get("proof", "")), proof(self._terms.token, nonce, peer)
            ):
                raise Refused("the proof is wrong")
        except (OSError, Refused, ValueError):
            connection.close()
            return
        with self._came:
            if self._closed:
                connection.close()
                return
            before = self._waiting.pop(peer, None)
            if before is not None:
                before[0].close()
            self._waiting[peer] = (connection, time.monotonic())
            self._came.notify_all()


def proof(token: str, nonce: str, peer: str) -> str:
    """Return what shows that *peer* knows the token."""
    return hmac.new(token.encode(), f"{nonce} {peer}".encode(), hashlib.sha256).hexdigest()


def measure(terms: Terms, own: Endpoint, node: str, peer: str, other: Endpoint) -> Measured:
    """Connect to *peer* and measure with it; what goes wrong is in the result."""
    deadline = time.monotonic() + CONNECTING
    while True:
        try:
            with _connect(own, other, CONNECTING) as connection:
                connection.settimeout(terms.patience)
                return _asking(connection, terms, node, peer, own.rail)
        except (OSError, Refused, ValueError, KeyError) as error:
            problem = f"{own.address} to {other.address} port {other.port}: {error or 'no answer'}"
        if time.monotonic() + RETRY > deadline:
            return Measured(peer=peer, rail=own.rail, problem=problem)
        time.sleep(RETRY)


def _connect(own: Endpoint, other: Endpoint, patience: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in other.address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(patience)
        _bind_to(connection, own.nic)
        connection.bind((own.address, 0))
        connection.connect((other.address, other.port))
    except OSError:
        connection.close()
        raise
    return connection


def _bind_to(one: socket.socket, nic: str) -> None:
    """Keep traffic on its NIC also where rails share a subnet; without the right, routes decide."""
    with contextlib.suppress(PermissionError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, nic.encode())


def _asking(connection: socket.socket, terms: Terms, node: str, peer: str, rail: str) -> Measured:
    nonce = str(_receive(connection).get("nonce", ""))
    _send(connection, {"from": node, "proof": proof(terms.token, nonce, node)})
    if not _receive(connection).get("ready"):
        raise Refused(f"{peer} is not ready")
    connection.settimeout(terms.patience)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    latency = _ping(connection)
    resent = _flood(connection, terms.seconds)
    rate = float(_receive(connection)["rate"])
    back = _drain(connection)
    _send(connection, {"rate": back})
    resent_back = float(_receive(connection)["resent"])
    return Measured(
        peer=peer,
        rail=rail,
        rate=round(rate, 4),
        back=round(back, 4),
        latency=round(latency, 1),
        resent=round(resent, 2),
        resent_back=round(resent_back, 2),
    )


def _answering(connection: socket.socket, terms: Terms, peer: str, rail: str) -> Measured:
    """Measure as the end that was connected to: the same turns, seen from the other side."""
    connection.settimeout(terms.patience)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _send(connection, {"ready": True})
    _pong(connection)
    back = _drain(connection)
    _send(connection, {"rate": back})
    resent = _flood(connection, terms.seconds)
    rate = float(_receive(connection)["rate"])
    _send(connection, {"resent": resent})
    return Measured(
        peer=peer, rail=rail, rate=round(rate, 4), back=round(back, 4), resent=round(resent, 2)
    )


def _ping(connection: socket.socket) -> float:
    """Return the median time of a small message there and back, in microseconds."""
    times = []
    for _ in range(PINGS):
        start = time.perf_counter()
        connection.sendall(b"p")
        _exactly(connection, 1)
        times.append(time.perf_counter() - start)
    return sorted(times)[PINGS // 2] * 1e6


def _pong(connection: socket.socket) -> None:
    for _ in range(PINGS):
        connection.sendall(_exactly(connection, 1))


def _flood(connection: socket.socket, seconds: float) -> float:
    """Send for a while, blocks behind their lengths; return the segments resent per thousand."""
    block = bytes(CHUNK)
    before = _segments(connection)
    end = time.perf_counter() + seconds
    piece = 1 << 14
    while time.perf_counter() < end:
        connection.sendall(struct.pack("!I", piece) + block[:piece])
        piece = min(CHUNK, piece * 2)
    connection.sendall(struct.pack("!I", 0))
    after = _segments(connection)
    return 1000.0 * (after[0] - before[0]) / max(1, after[1] - before[1])


def _drain(connection: socket.socket) -> float:
    """Take what is sent until its end; return the rate in Gb/s, the slow start left out."""
    buffer = memoryview(bytearray(CHUNK))
    start = mark = time.perf_counter()
    total = counted = 0
    while (length := int(struct.unpack("!I", _exactly(connection, 4))[0])) > 0:
        if length > CHUNK:
            raise Refused(f"a block of {length} bytes")
        while length:
            got = connection.recv_into(buffer[:length])
            if not got:
                raise Refused("it ended in the middle")
            length -= got
            total += got
        if not counted and total > CHUNK:
            counted, mark = total, time.perf_counter()
    end = time.perf_counter()
    if total > 2 * counted and end > mark > start:
        return 8e-9 * (total - counted) / (end - mark)
    return 8e-9 * total / max(end - start, 1e-9)


def _segments(connection: socket.socket) -> tuple[int, int]:
    """Return how many segments were sent again and how many at all (``struct tcp_info``)."""
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    except OSError:
        return 0, 0
    resent = struct.unpack_from("=I", told, 100)[0] if len(told) >= 104 else 0
    sent = struct.unpack_from("=I", told, 136)[0] if len(told) >= 140 else 0
    return resent, sent


def _send(connection: socket.socket, obj: Any) -> None:
    connection.sendall(json.dumps(obj).encode() + b"\n")


def _receive(connection: socket.socket) -> dict[str, Any]:
    """Return one line of JSON; read byte by byte, for blocks may follow."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) > LONGEST_LINE:
            raise Refused("a line without end")
        line += _exactly(connection, 1)
    found = json.loads(line)
    if not isinstance(found, dict):
        raise Refused("no JSON object")
    return found


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        got = connection.recv(count - len(found))
        if not got:
            raise Refused("the connection ended")
        found += got
    return bytes(found)
