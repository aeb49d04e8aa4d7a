"""The protobuf wire format: tags, varints, lengths.

Source: the protocol buffers encoding specification.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | float | bytes

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """Bytes that are no protobuf message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and raw value of each field of a message, in order.

    Varints come as unsigned integers; see :func:`signed`.

    Raises:
        Malformed: when the bytes end early or hold an unknown wire type.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if kind == BYTES:
            size, at = _varint(data, at)
        if size < 0 or at + size > end:
            raise Malformed(f"field {number}: wire type {kind} does not fit")
        chunk = data[at : at + size]
        at += size
        yield number, struct.unpack("<d", chunk)[0] if kind == FIXED64 else chunk


def signed(value: int) -> int:
    """Return a varint as the two's complement 64-bit integer that it stands for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def varint(value: int) -> bytes:
    """Return a number, which may be negative, as a varint."""
    if 0 <= value < len(_SHORT):
        return _SHORT[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def double(value: float) -> bytes:
    """Return the eight bytes of a 64-bit number."""
    return struct.pack("<d", value)


_SHORT = [bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(1 << 11)]
"""The varints that are needed most."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number ends early or is too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
