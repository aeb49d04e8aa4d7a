"""``python -m lockstep.train.persist FD``: writes ranks' states as a DCP checkpoint.

A child of the launcher with the ranks' own Python. It is told over the socket *FD* what to write,
with a file in memory that holds the copy, and answers each. Every rank's part is written by torch's
``FileSystemWriter``, so that ``torch.distributed.checkpoint.load`` reads the whole anywhere; then
come its receipt, and with the last receipt the manifest.
"""

from __future__ import annotations

import contextlib
import io
import json
import mmap
import os
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import WriteResult

from lockstep.train import catalogue, storage
from lockstep.train.catalogue import Catalogue, Entry, NotStored
from lockstep.train.layout import view
from lockstep.train.state import Json, put_together
from lockstep.train.storage import Place

RANDOM = "random"
_LONGEST_REQUEST = 1 << 16
_PIECE = 8 << 20


def stored_key(key: str, rank: int, sharded: bool, replicated: bool) -> str:
    """Return the name under which a tensor of *rank* is stored."""
    if key == RANDOM or key.startswith(f"{RANDOM}."):
        return f"{RANDOM}.{rank}{key[len(RANDOM) :]}"
    # What differs from rank to rank stands beside each other.
    return key if sharded or replicated else f"ranks.{rank}.{key}"


class _Planner(DefaultSavePlanner):  # type: ignore[misc]  # torch is untyped here
    """Hands over what the items name."""

    def __init__(self, objects: dict[MetadataIndex, Any]) -> None:
        super().__init__()
        self._objects = objects

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        found = self._objects[write_item.index]
        if write_item.type == WriteItemType.BYTE_IO:
            made = io.BytesIO()
            torch.save(found, made)
            return made
        tensor: Tensor = found
        return tensor


class Part:
    """One rank's part of a checkpoint."""

    def __init__(self, request: Json, memory: Any) -> None:
        self.request = request
        self.rank, self.size = int(request["rank"]), int(request["size"])
        table, plain, self._data, _ = request["lengths"]
        self.table = json.loads(memory[:table])
        self.plain = json.loads(memory[table : table + plain])
        self._memory = memoryview(memory)
        self.replicated = bool(request["replicated"]) or self.size == 1
        self.shared = bool(request.get("shared"))
        """Whether all ranks hold alike what the table calls shared."""

    def tensor(self, entry: Json) -> Tensor:
        """Return the tensor of an *entry*, as a view of the memory."""
        return view(self._memory, self._data, entry)

    def items(self) -> tuple[list[WriteItem], dict[MetadataIndex, Any]]:
        """Return what this rank writes: its chunks, its share of what all have, plain values."""
        items: list[WriteItem] = []
        objects: dict[MetadataIndex, Any] = {}
        for number, entry in enumerate(self.table):
            sharded = "size" in entry
            once = self.replicated or (self.shared and entry.get("shared", False))
            key = stored_key(entry["key"], self.rank, sharded, once)
            shared = key == entry["key"] and not sharded
            if (shared and number % self.size != self.rank) or not entry.get("owner", True):
                continue
            item = _tensor_item(key, entry)
            if 0 not in entry["shape"] or not sharded:
                items.append(item)
                objects[item.index] = self.tensor(entry)
        if self.rank == 0:
            for key, value in self._plain_values():
                item = WriteItem(MetadataIndex(key), WriteItemType.BYTE_IO)
                items.append(item)
                objects[item.index] = value
        return items, objects

    def _plain_values(self) -> list[tuple[str, Any]]:
        """Return the values that are no tensors, as DCP names them."""
        from torch.distributed.checkpoint._nested_dict import flatten_state_dict

        state = put_together(self.plain, [self.tensor(one) for one in self.table])
        state.pop(RANDOM, None)
        return [(k, v) for k, v in flatten_state_dict(state)[0].items() if not torch.is_tensor(v)]


def _tensor_item(key: str, entry: Any) -> WriteItem:
    shape = torch.Size(entry["shape"])
    size = torch.Size(entry.get("size", entry["shape"]))
    at = torch.Size(entry.get("at", [0] * len(shape)))
    data = TensorWriteData(
        ChunkStorageMetadata(at, shape), TensorProperties(getattr(torch, entry["dtype"])), size
    )
    kind = WriteItemType.SHARD if "size" in entry else WriteItemType.TENSOR
    return WriteItem(MetadataIndex(key, at), kind, tensor_data=data)


def write(request: Json, memory: Any) -> bool:
    """Write one rank's part; say whether the checkpoint is whole with it.

    Raises:
        OSError: when it cannot be written.
    """
    home = storage.at(request["directory"])
    books = Catalogue(home)
    step, generation = int(request["step"]), int(request["generation"])
    if any(one.step == step for one in books.entries()):
        return True
    directory = home / f"step-{step:012}-{generation}"
    if isinstance(directory, Path):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = Part(request, memory)
    items, objects = part.items()
    writer = _writer(directory)
    plans = writer.prepare_global_plan([*[SavePlan([])] * part.rank, SavePlan(items)])
    results = writer.write_data(plans[part.rank], _Planner(objects)).wait()
    told = {
        **{name: request[name] for name in ("rank", "size", "step", "generation")},
        "replicated": part.replicated,
        "shared": part.shared,
        "table": part.table,
        "plain": part.plain,
        "items": [_told(one, item, directory) for one, item in _paired(results, items)],
    }
    catalogue.write(directory / catalogue.receipt_name(part.rank), told)
    return _commit(books, directory, writer, told)


def _writer(directory: Place) -> FileSystemWriter:
    if isinstance(directory, Path):
        return FileSystemWriter(directory, sync_files=True)
    # An object is there as a whole once it is closed; nothing is to be flushed here.
    made = FileSystemWriter(str(directory), sync_files=False)
    made.fs, made.path = _ObjectStore(), directory
    return made


class _ObjectStore(FileSystem):  # type: ignore[misc]  # torch is untyped here
    """An object store as torch's writer uses a file system."""

    @contextlib.contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        import obstore

        stream = _Stream(obstore.open_writer(path.store, path.key))
        with storage.as_files(path):
            yield stream
            stream.end()

    def concat_path(self, path: Any, suffix: str) -> Any:
        return path / suffix

    def rename(self, path: Any, new_path: Any) -> None:
        import obstore

        with storage.as_files(path):
            obstore.rename(path.store, path.key, new_path.key)

    def exists(self, path: Any) -> bool:
        # What is there is replaced.
        return False


class _Stream(io.RawIOBase):
    """What is written to one object."""

    def __init__(self, writer: Any) -> None:
        super().__init__()
        self._writer, self._at = writer, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE):
            self._writer.write(bytes(view[start : start + _PIECE]))
        self._at += len(view)
        return len(view)

    def tell(self) -> int:
        return self._at

    def end(self) -> None:
        """Let the object be there."""
        self._writer.close()


def _paired(
    results: list[WriteResult], items: list[WriteItem]
) -> list[tuple[WriteResult, WriteItem]]:
    by_index = {item.index: item for item in items}
    return [(one, by_index[one.index]) for one in results]


def _told(result: WriteResult, item: WriteItem, directory: Place) -> Json:
    info = result.storage_data
    crc = zlib.crc32(storage.read_range(directory / info.relative_path, info.offset, info.length))
    place = {"file": info.relative_path, "start": info.offset, "bytes": info.length, "crc": crc}
    said: Json = {"key": result.index.fqn, "written": result.size_in_bytes, **place}
    if item.tensor_data is not None:
        chunk = item.tensor_data.chunk
        said |= {
            "dtype": str(item.tensor_data.properties.dtype)[6:],
            "size": list(item.tensor_data.size),
            "at": list(chunk.offsets),
            "shape": list(chunk.sizes),
        }
    return said


def _commit(books: Catalogue, directory: Place, writer: FileSystemWriter, own: Json) -> bool:
    """Let the checkpoint count once all its receipts are there; the last rank does it."""
    told, sums = [], []
    for rank in range(own["size"]):
        try:
            data = storage.read(directory / catalogue.receipt_name(rank))
        except FileNotFoundError:
            return False
        told.append(json.loads(data))
        sums.append(zlib.crc32(data))
    if any(one.get(name) != own.get(name) for one in told for name in ("replicated", "shared")):
        return False
    items = [item for one in told for item in one["items"]]
    writer.finish(_metadata(items), [[_result(item) for item in items]])
    now = time.time()
    free = not any(item["key"].startswith("ranks.") for item in items)
    catalogue.write_manifest(
        directory,
        {
            **{name: own[name] for name in ("step", "generation", "size", "replicated")},
            "job": books.directory.name,
            "at": now,
            "receipts": sums,
            "tensors": [item for item in items if "at" in item],
        },
    )
    books.add(Entry(own["step"], directory.name, own["size"], free, now))
    return True


def _metadata(items: list[Json]) -> Metadata:
    found: dict[str, Any] = {}
    for item in items:
        if "at" not in item:
            found[item["key"]] = BytesStorageMetadata()
            continue
        known = found.setdefault(
            item["key"],
            TensorStorageMetadata(
                TensorProperties(getattr(torch, item["dtype"])), torch.Size(item["size"]), []
            ),
        )
        chunk = ChunkStorageMetadata(torch.Size(item["at"]), torch.Size(item["shape"]))
        known.chunks.append(chunk)
    return Metadata(found)


def _result(item: Json) -> WriteResult:
    from torch.distributed.checkpoint.filesystem import _StorageInfo

    at = torch.Size(item["at"]) if "at" in item else None
    info = _StorageInfo(item["file"], item["start"], item["bytes"])
    return WriteResult(MetadataIndex(item["key"], at), item["written"], info)


def main() -> None:
    """Write what is asked for until the launcher hangs up."""
    torch.set_num_threads(1)
    with socket.socket(fileno=int(sys.argv[1])) as launcher:
        while True:
            data, files, _, _ = socket.recv_fds(launcher, _LONGEST_REQUEST, 1)
            if not data:
                return
            answer: Json = {}
            try:
                answer["whole"] = _one(json.loads(data), files[0])
            except (OSError, NotStored, RuntimeError) as error:
                answer["problem"] = str(error) or type(error).__name__
            finally:
                for file in files:
                    os.close(file)
            launcher.sendall(json.dumps(answer).encode())


def _one(request: Json, file: int) -> bool:
    memory = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    try:
        return write(request, memory)
    finally:
        # Views of tensors may still refer to it; then it goes with them.
        with contextlib.suppress(BufferError):
            memory.close()


if __name__ == "__main__":
    main()
