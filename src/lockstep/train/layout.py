"""Where the tensors of a rank's state lie in a slot of its memory."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lockstep.train import shards
from lockstep.train.copying import address
from lockstep.train.segment import PAGE, rounded

_ALIGNED = 64


@dataclass(frozen=True)
class Layout:
    """Where the tensors lie in a slot."""

    shapes: tuple[tuple[str, tuple[int, ...], torch.dtype], ...]
    """Key, shape of what the rank holds, kind of values."""
    entries: list[Any]
    """What the table says of each tensor."""
    table: bytes
    room: int
    """Bytes for the plain values."""
    data: int
    """Where the tensors begin."""
    size: int
    sharded: bool
    """Whether the rank holds parts of tensors."""
    shared: frozenset[str]
    """Keys of the tensors that all ranks may hold alike; they lie behind the others."""
    shared_bytes: int
    shared_sum: int
    """Checksum of where those lie among themselves."""

    @classmethod
    def of(cls, tensors: dict[str, Tensor], room: int, alike: set[int]) -> Layout:
        """Lay out *tensors* one behind the other, last those at the addresses in *alike*."""
        shapes = shapes_of(tensors)
        places = [address(tensor) for tensor in tensors.values()]
        shared = frozenset(
            key
            for (key, *_), tensor, place in zip(shapes, tensors.values(), places)
            if place in alike and not shards.is_sharded(tensor)
        )
        entries = [
            _entry(key, shape, dtype, tensor)
            for (key, shape, dtype), tensor in zip(shapes, tensors.values())
        ]
        own = _place([one for one in entries if one["key"] not in shared], 0)
        last = [one for one in entries if one["key"] in shared]
        size = _place(last, 0)
        shared_sum = zlib.crc32(json.dumps(last).encode())
        own = rounded(own + PAGE)
        _place(last, own)
        for one in entries:
            one.pop("bytes")
            if one["key"] in shared:
                one["shared"] = True
        table = json.dumps(entries).encode()
        sharded = any("size" in entry for entry in entries)
        data = rounded(len(table) + room)
        total = data + own + size
        return cls(shapes, entries, table, room, data, total, sharded, shared, size, shared_sum)

    @property
    def sum(self) -> int:
        """A checksum of the table."""
        return zlib.crc32(self.table)


def view(memory: Any, start: int, entry: Any) -> Tensor:
    """Return the tensor of an *entry* of a table; tensors lie in *memory* from *start* on."""
    shape, dtype = torch.Size(entry["shape"]), getattr(torch, entry["dtype"])
    if not shape.numel():
        return torch.empty(shape, dtype=dtype)
    at = start + entry["offset"]
    return torch.frombuffer(memory, dtype=dtype, count=shape.numel(), offset=at).reshape(shape)


def _entry(key: str, shape: tuple[int, ...], dtype: torch.dtype, tensor: Tensor) -> Any:
    entry: Any = {"key": key, "dtype": str(dtype)[6:], "shape": list(shape)}
    if (part := shards.chunk(tensor)) is not None:
        entry |= {"size": list(part.size), "at": list(part.at), "owner": part.owner}
    held = shards.local(tensor)
    return entry | {"bytes": held.numel() * held.element_size()}


def _place(entries: list[Any], at: int) -> int:
    """Give *entries* their offsets from *at* on; return where they end."""
    for entry in entries:
        entry["offset"] = at
        at += -(-entry["bytes"] // _ALIGNED) * _ALIGNED
    return at


def shapes_of(tensors: dict[str, Tensor]) -> tuple[tuple[str, tuple[int, ...], torch.dtype], ...]:
    """Return key, shape of what this rank holds, and kind of values of each tensor."""
    return tuple((key, tuple(shards.local(t).shape), t.dtype) for key, t in tensors.items())
