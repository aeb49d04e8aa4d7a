"""``python -m lockstep.train.export DIRECTORY OUT``: a stored checkpoint's weights as safetensors.

One tensor is in memory at a time, and each range that is read is compared with its checksum.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from lockstep.train import storage
from lockstep.train.catalogue import Catalogue, Entry, NotStored
from lockstep.train.loading import Stored
from lockstep.train.state import Json
from lockstep.train.storage import Place

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""What safetensors calls torch's types."""
_ALIGNED = 8
_EXAMPLES = """\
DIRECTORY is that of one job, below spec.checkpoint.directory: it holds index.json.

examples:
  python -m lockstep.train.export /mnt/digits-1a2b3c4d model.safetensors
  python -m lockstep.train.export s3://models/digits-1a2b3c4d model.safetensors
  python -m lockstep.train.export /mnt/digits-1a2b3c4d ema.safetensors --part ema --step 512
"""


class NotExported(Exception):
    """The checkpoint has nothing that can be exported so; the message says what to change."""


def export(
    directory: Place,
    out: Path,
    part: str = "model",
    step: int | None = None,
    rank: int | None = None,
) -> Entry:
    """Write the tensors of *part*, a name given to ``Checkpointer``, to *out*; return from where.

    The newest checkpoint is read unless *step* names another. *rank* is needed where the states of
    ranks differ.

    Raises:
        NotStored: when there is no such checkpoint, or it is not whole.
        NotExported: when it has no such part, or the part cannot be exported.
        OSError: when *out* cannot be written.
    """
    entry, stored = _open(_resolved(directory), step, rank)
    prefix = f"{part}."
    shapes = {k: v for k, v in stored.tensors().items() if k.startswith(prefix)}
    if not shapes:
        known = ", ".join(sorted({key.partition(".")[0] for key in stored.tensors()} - {"random"}))
        raise NotExported(f"step {entry.step} has no tensors of {part!r} (--part): it has {known}")
    told = {"format": "pt", "job": _resolved(directory).name, "step": str(entry.step)}
    header = _header(shapes, len(prefix), told)
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for key in shapes:
                file.write(_bytes(stored.tensor(key)))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return entry


def _resolved(directory: Place) -> Place:
    return directory.resolve() if isinstance(directory, Path) else directory


def _open(directory: Place, step: int | None, rank: int | None) -> tuple[Entry, Stored]:
    entries = Catalogue(directory).entries()
    there = ", ".join(str(one.step) for one in entries) or "none"
    entry = next((one for one in entries if step in (None, one.step)), None)
    if entry is None:
        wanted = "checkpoint" if step is None else f"checkpoint of step {step}"
        raise NotStored(f"{directory} has no {wanted} (steps in its index.json: {there})")
    if rank is None and not entry.free:
        raise NotExported(
            f"the ranks of step {entry.step} hold different states: "
            f"name one with --rank, 0 to {entry.size - 1}"
        )
    if rank is not None and not 0 <= rank < entry.size:
        raise NotExported(f"--rank {rank}: {entry.size} ranks wrote step {entry.step}")
    at = directory / entry.directory
    return entry, Stored(at, entry.step, rank or 0, entry.size)


def _header(shapes: dict[str, tuple[str, list[int]]], cut: int, told: dict[str, str]) -> bytes:
    """Return the header of tensors that follow each other, without *cut* letters of their keys."""
    header: Json = {"__metadata__": told}
    end = 0
    for key, (dtype, shape) in shapes.items():
        if dtype not in DTYPES:
            raise NotExported(f"{key} is of {dtype}, which safetensors does not have")
        begin, end = end, end + _size(dtype, shape)
        header[key[cut:]] = {
            "dtype": DTYPES[dtype],
            "shape": shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % _ALIGNED)


def _size(dtype: str, shape: Sequence[int]) -> int:
    size: int = getattr(torch, dtype).itemsize
    for length in shape:
        size *= length
    return size


def _bytes(tensor: Tensor) -> bytearray:
    flat = tensor.contiguous().flatten().view(torch.uint8)
    data = bytearray(flat.numel())
    if data:
        torch.frombuffer(data, dtype=torch.uint8).copy_(flat)
    return data


def main(arguments: Sequence[str] | None = None) -> int:
    """Export what the command line names; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m lockstep.train.export",
        description="Write a stored checkpoint's weights as a safetensors file.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=storage.at, help="the job's checkpoints: a path or a URL")
    parser.add_argument("out", type=Path, help="the file to write; replaced if it is there")
    parser.add_argument("--part", default="model", help="a name given to Checkpointer (model)")
    parser.add_argument("--step", type=int, help="the checkpoint (the newest)")
    parser.add_argument("--rank", type=int, help="whose state, where the ranks' states differ")
    told = parser.parse_args(arguments)
    try:
        entry = export(told.directory, told.out, told.part, told.step, told.rank)
    except (NotStored, NotExported, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print(f"{told.out}: {told.part} after {entry.step} steps, {told.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
