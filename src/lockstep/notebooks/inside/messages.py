"""Messages of Jupyter's WebSocket protocol, and our own between gateway and keeper."""

from __future__ import annotations

import itertools
import json
import struct
import uuid
from datetime import UTC, datetime
from typing import Any, Final

Message = dict[str, Any]

OWN: Final = '{"lockstep": '
"""What a frame begins with that a keeper says to its gateway and not to a client."""
PARKED: Final = OWN + '"parked"}'
VERSION: Final = "5.4"
PING_SECONDS: Final = 30.0
MOST: Final = 512 << 20
"""Bytes of the longest message."""


def returned(number: str) -> str:
    """Return the frame that gives a message back: it was not passed on."""
    return json.dumps({"lockstep": "returned", "msg_id": number})


def accepted(number: str) -> str:
    """Return the frame that says that a message was passed on."""
    return json.dumps({"lockstep": "accepted", "msg_id": number})


def read(frame: str | bytes) -> tuple[str, Message]:
    """Return channel and content of a client's frame; binary ones have buffers.

    Raises:
        ValueError: when it is no message.
    """
    buffers: list[bytes] = []
    if isinstance(frame, bytes):
        count = struct.unpack("!I", frame[:4])[0]
        if not 0 < count <= len(frame) // 4:
            raise ValueError("a frame's offsets are outside of it")
        offsets = [*struct.unpack(f"!{count}I", frame[4 : 4 * (count + 1)]), len(frame)]
        parts = [frame[a:b] for a, b in itertools.pairwise(offsets)]
        frame, buffers = parts[0].decode(), parts[1:]
    message = json.loads(frame)
    if not isinstance(message, dict) or not isinstance(message.get("header"), dict):
        raise ValueError("a message has no header")
    channel = message.pop("channel", "shell")
    if channel not in ("shell", "control", "stdin"):
        raise ValueError(f"no client speaks on the channel {channel!r}")
    header = message["header"]
    if not isinstance(header.get("msg_id"), str) or not isinstance(header.get("msg_type"), str):
        raise ValueError("a header lacks msg_id or msg_type")
    # A kernel takes a header without these for one of an ancient protocol.
    for key, usual in (("version", VERSION), ("username", ""), ("session", "")):
        header.setdefault(key, usual)
    for key in ("parent_header", "metadata", "content"):
        if not isinstance(message.setdefault(key, {}), dict):
            raise ValueError(f"a message's {key} is no object")
    message["msg_id"], message["msg_type"] = header["msg_id"], header["msg_type"]
    message["buffers"] = buffers
    return channel, message


def write(channel: str, message: Message) -> str | bytes:
    """Return the frame of a message; binary where it has buffers."""
    buffers = [bytes(one) for one in message.get("buffers") or []]
    body = {key: message.get(key) for key in ("header", "parent_header", "metadata", "content")}
    header = body["header"] or {}
    body |= {
        "msg_id": header.get("msg_id"),
        "msg_type": header.get("msg_type"),
        "channel": channel,
        "buffers": [],
    }
    text = json.dumps(body, default=_plain)
    if not buffers:
        return text
    parts = [text.encode(), *buffers]
    offsets, at = [], 4 * (len(parts) + 1)
    for part in parts:
        offsets.append(at)
        at += len(part)
    return struct.pack(f"!{len(parts) + 1}I", len(parts), *offsets) + b"".join(parts)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    raise TypeError(f"{type(value)} is nothing that a message holds")


def make(kind: str, content: Message, parent: Message | None = None) -> Message:
    """Return a message that no kernel said, in answer to *parent*'s header if one is given."""
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": kind,
        "username": "lockstep",
        "session": "lockstep",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "version": VERSION,
    }
    return {"header": header, "parent_header": parent or {}, "metadata": {}, "content": content}


def status(state: str, parent: Message | None = None) -> str | bytes:
    """Return the frame that says that a kernel is in *state*."""
    return write("iopub", make("status", {"execution_state": state}, parent))
