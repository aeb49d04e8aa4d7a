"""An HTTP server that answers every request with one pod, as cheaply as Python can.

Run as a program: prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

BODY = (
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default",'
    b'"uid":"u","resourceVersion":"1"},"spec":{"containers":[{"name":"main"}]},"status":{}}'
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(BODY)).encode()
    + b"\r\n\r\n"
    + BODY
)


class Stub(asyncio.Protocol):
    """Counts whole requests; bodies have a Content-Length."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._transport.write(ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
