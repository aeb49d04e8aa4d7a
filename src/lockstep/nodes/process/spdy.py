"""SPDY/3.1 as far as Kubernetes forwards ports in it: frames to bytes and back.

Source: the SPDY 3.1 draft. There is no flow control: client-go's library has none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

PROTOCOL: Final = "SPDY/3.1"
_VERSION: Final = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_HEAD: Final = 8
_MAX_CONTROL: Final = 64 << 10
_MAX_DATA: Final = 1 << 20
_MAX_HEADERS: Final = 64 << 10


class BadFrame(ValueError):
    """What came is no frame that is understood; the connection cannot go on."""


class Opened(NamedTuple):
    """The other side opens a stream."""

    stream: int
    headers: dict[str, str]


class Data(NamedTuple):
    """Bytes of a stream; *ended* says that there will be no more."""

    stream: int
    data: bytes
    ended: bool


class Reset(NamedTuple):
    """The other side gives a stream up."""

    stream: int


class Ping(NamedTuple):
    """A question whether this side still lives, answered by the same."""

    number: int


Frame = Opened | Data | Reset | Ping


class Reader:
    """Takes bytes as they come and gives the frames in them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with *data*; kinds that say nothing are left out.

        Raises:
            BadFrame: when the bytes are no frames, or one is too large.
        """
        self._buffer += data
        while len(self._buffer) >= _HEAD:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            control = bool(first >> 31)
            if length > (_MAX_CONTROL if control else _MAX_DATA):
                raise BadFrame(f"a frame of {length} bytes is too large")
            if len(self._buffer) < _HEAD + length:
                return
            body = bytes(self._buffer[_HEAD : _HEAD + length])
            del self._buffer[: _HEAD + length]
            if not control:
                yield Data(first, body, bool(flags & _FIN))
            elif first >> 16 & 0x7FFF != _VERSION:
                raise BadFrame("it is not SPDY 3")
            else:
                yield from self._control(first & 0xFFFF, flags, body)

    def _control(self, kind: int, flags: int, body: bytes) -> Iterator[Frame]:
        try:
            if kind == _SYN_STREAM:
                (stream,) = struct.unpack_from(">I", body)
                yield Opened(stream, self._headers(body[10:]))
                if flags & _FIN:
                    yield Data(stream, b"", ended=True)
            elif kind == _RST_STREAM:
                yield Reset(struct.unpack_from(">I", body)[0])
            elif kind == _PING:
                yield Ping(struct.unpack_from(">I", body)[0])
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise BadFrame(f"a frame of type {kind} is broken: {error}") from None

    def _headers(self, block: bytes) -> dict[str, str]:
        text = self._inflate.decompress(block, _MAX_HEADERS)
        if self._inflate.unconsumed_tail:
            raise BadFrame("the headers of a stream are too large")
        (count,) = struct.unpack_from(">I", text)
        at, words = 4, []
        for _ in range(2 * count):
            (length,) = struct.unpack_from(">I", text, at)
            words.append(text[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return dict(zip(words[::2], words[1::2], strict=True))


class Writer:
    """Gives the bytes of frames; they have to be sent in the order in which they were made."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Return the acceptance of a stream."""
        block = self._deflate.compress(struct.pack(">I", 0))
        block += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, struct.pack(">I", stream) + block)

    def data(self, stream: int, data: bytes, *, ended: bool = False) -> bytes:
        """Return bytes of a stream."""
        return struct.pack(">II", stream, (_FIN if ended else 0) << 24 | len(data)) + data

    def reset(self, stream: int) -> bytes:
        """Return the refusal of a stream."""
        refused = 3
        return _control(_RST_STREAM, struct.pack(">II", stream, refused))

    def ping(self, number: int) -> bytes:
        """Return the answer to a `Ping`."""
        return _control(_PING, struct.pack(">I", number))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 1 << 15 | _VERSION, kind, len(body)) + body


_WORDS: Final = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|"
    "accept-ranges|age|allow|authorization|cache-control|connection|content-base|content-encoding|"
    "content-language|content-length|content-location|content-md5|content-range|content-type|date|"
    "etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|"
    "if-unmodified-since|last-modified|location|max-forwards|pragma|proxy-authenticate|"
    "proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|"
    "user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|"
    "public|set-cookie|keep-alive|origin"
)
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,"
    "sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
# With what both sides begin to compress headers.
_DICTIONARY: Final = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split("|"))
    + _TAIL.encode()
)
