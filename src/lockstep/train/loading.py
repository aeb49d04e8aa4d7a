"""A rank's state out of a stored checkpoint that any number of ranks wrote.

Each tensor is put together from the chunks that overlap what this rank holds. Every range that is
read is compared with its checksum; only weights are unpickled.
"""

from __future__ import annotations

import io
import zlib
from typing import Any

import torch
from torch import Tensor

from lockstep.train import catalogue, shards, storage
from lockstep.train.catalogue import NotStored
from lockstep.train.persist import RANDOM, stored_key
from lockstep.train.state import Json, put_together
from lockstep.train.storage import Place


class Stored:
    """A checkpoint in *directory*, as one of *size* ranks reads it."""

    def __init__(self, directory: Place, step: int, rank: int, size: int) -> None:
        """Open it.

        Raises:
            NotStored: when it is not whole, or ranks of another number cannot go on from it.
        """
        self._directory, self._rank = directory, rank
        self._manifest = catalogue.manifest(directory, step)
        self.same = self._manifest["size"] == size
        self._from = rank if self.same else 0
        sums = self._manifest["receipts"]
        self._receipt = catalogue.receipt(directory, self._from, sums[self._from])
        self._chunks: dict[str, list[Json]] = {}
        for item in self._manifest["tensors"]:
            self._chunks.setdefault(item["key"], []).append(item)
        own = [key for key in self._chunks if key.startswith("ranks.")]
        if own and not self.same:
            wrote = self._manifest["size"]
            raise NotStored(
                f"{directory} was written by {wrote} ranks whose states differ (such as "
                f"{own[0]}): {size} ranks cannot go on from it"
            )

    def state(self, templates: dict[str, Tensor]) -> Json:
        """Return the state; *templates* tell how this rank's tensors are spread now, by key."""
        tensors: list[Tensor | None] = []
        for entry in self._receipt["table"]:
            key = entry["key"]
            if key.startswith(f"{RANDOM}.") and not self.same:
                tensors.append(None)
            else:
                tensors.append(self._tensor(entry, templates.get(key)))
        state: Json = put_together(self._receipt["plain"], tensors)
        return state

    def tensors(self) -> dict[str, tuple[str, list[int]]]:
        """Return type and whole shape of each tensor, by key, in the order of the state."""
        return {
            one["key"]: (one["dtype"], list(one.get("size", one["shape"])))
            for one in self._receipt["table"]
        }

    def tensor(self, key: str) -> Tensor:
        """Return the whole tensor at *key*, however it was spread.

        Raises:
            NotStored: when its bytes are not those that were written.
        """
        entry = next(one for one in self._receipt["table"] if one["key"] == key)
        return self._tensor(entry, None)

    def _tensor(self, entry: Any, template: Tensor | None) -> Tensor:
        sharded = "size" in entry
        name = stored_key(entry["key"], self._from, sharded, entry["key"] in self._chunks)
        dtype = getattr(torch, entry["dtype"])
        part = shards.chunk(template) if template is not None else None
        if part is None:
            whole = entry.get("size", entry["shape"])
            part = shards.Chunk(tuple(whole), (0,) * len(whole), tuple(whole), True)
        elif list(part.size) != entry.get("size", entry["shape"]):
            raise NotStored(
                f"{entry['key']} has the shape {entry['shape']} in {self._directory}, and "
                f"{list(part.size)} in the program"
            )
        made = torch.empty(part.shape, dtype=dtype)
        self._fill(made, part, self._chunks.get(name, []), name)
        spread = template is not None and shards.is_sharded(template)
        return shards.like(template, made) if template is not None and spread else made

    def _fill(self, made: Tensor, part: shards.Chunk, chunks: list[Json], name: str) -> None:
        filled = 0
        for item in chunks:
            common = shards.overlap(part.at, part.shape, item["at"], item["shape"])
            if common is not None:
                mine, theirs = common
                made[mine] = self._read(item)[theirs]
                filled += made[mine].numel()
        if filled != made.numel():
            raise NotStored(f"{self._directory} lacks {made.numel() - filled} values of {name}")

    def _read(self, item: Json) -> Tensor:
        path = self._directory / item["file"]
        try:
            data = storage.read_range(path, item["start"], item["bytes"])
        except OSError as error:
            raise NotStored(f"{path}: {error}") from error
        if zlib.crc32(data) != item["crc"]:
            raise NotStored(f"{path}: the bytes of {item['key']} are not those that were written")
        tensor: Tensor = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return tensor
