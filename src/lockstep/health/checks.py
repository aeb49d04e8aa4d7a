"""Checks of a node: does it compute right, keep what it is given, and read what it wrote?

``python -m lockstep.health.checks matmul memory disk [--directory DIR]`` runs in a child of the
agent, or of the launcher before its ranks, and writes one JSON list of results. Each check has a
form for CPUs; with torch and GPUs matmul and memory run on each of them too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from lockstep.api.node_health import CheckResult

_SIZE: Final = 512
_REPEATS: Final = 4
_MOST_MEMORY: Final = 256 << 20
"""Bytes; with what Python takes it fits the agent's own limit of 512 MiB in the chart."""
_PART: Final = 1 << 20
_DISK: Final = 16 << 20
_PATTERNS: Final = (0x00, 0xFF, 0x55, 0xAA)
_GPU_SIZE: Final = 4096


def matmul(multiply: Callable[[Any, Any], Any] = np.matmul) -> str:
    """Multiply matrices of small integers, whose product is exact; return the rate in words.

    Raises:
        Wrong: when an element of a product is another one than it must be.
    """
    random = np.random.default_rng(7)
    a = random.integers(-8, 8, (_SIZE, _SIZE)).astype(np.float32)
    b = random.integers(-8, 8, (_SIZE, _SIZE)).astype(np.float32)
    # By the sums of rows and columns, in whole numbers: another way than the product itself.
    rows = a.astype(np.int64) @ b.astype(np.int64).sum(axis=1)
    columns = a.astype(np.int64).sum(axis=0) @ b.astype(np.int64)
    began = time.perf_counter()
    for number in range(_REPEATS):
        product = np.asarray(multiply(a, b)).astype(np.int64)
        wrong = np.count_nonzero(product.sum(axis=1) != rows)
        wrong += np.count_nonzero(product.sum(axis=0) != columns)
        if wrong:
            raise Wrong(f"product {number + 1} of {_REPEATS} is wrong in {wrong} rows and columns")
    rate = 2 * _SIZE**3 * _REPEATS / (time.perf_counter() - began)
    return f"{_REPEATS} products are right, {rate / 1e9:.1f} GFLOP/s"


class Wrong(Exception):
    """A check found what must not be."""


def memory(size: int | None = None) -> str:
    """Write patterns to memory and read them; return how much in words.

    Raises:
        Wrong: when something else is read than was written.
    """
    size = _free() if size is None else size
    block = np.empty(size, dtype=np.uint8)
    for pattern in _PATTERNS:
        block.fill(pattern)
        # Part by part: comparing the whole at once takes as much memory again.
        parts = (block[at : at + _PART] for at in range(0, size, _PART))
        wrong = sum(int(np.count_nonzero(part != pattern)) for part in parts)
        if wrong:
            raise Wrong(f"{wrong} of {size} bytes are not {pattern:#04x} as they were written")
    return f"{size >> 20} MiB hold what is written"


def _free() -> int:
    """Return a part of the memory that is available, at most 256 MiB."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(one for one in lines if one.startswith("MemAvailable"))
        return min(_MOST_MEMORY, max(1 << 20, int(line.split()[1]) * 1024 // 20))
    return 1 << 24


def disk(directory: Path) -> str:
    """Write a file, read it past the cache, and take it away; return the rates in words.

    Raises:
        Wrong: when something else is read than was written.
        OSError: when it cannot be written or read.
    """
    data = np.random.default_rng(11).bytes(_DISK)
    path = directory / f".lockstep-check-{os.getpid()}"
    try:
        began = time.perf_counter()
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            written = time.perf_counter()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if path.read_bytes() != data:
            raise Wrong(f"{directory} returns other bytes than were written")
        took = time.perf_counter() - written
    finally:
        path.unlink(missing_ok=True)
    rate, back = _DISK / (written - began) / 1e6, _DISK / max(took, 1e-9) / 1e6
    return f"{directory}: written with {rate:.0f} MB/s, read with {back:.0f} MB/s"


def _on_gpus(name: str) -> Iterator[CheckResult]:
    """Yield the results of matmul and memory on each GPU that torch can use."""
    if find_spec("torch") is None or not Path("/dev/nvidiactl").exists():
        return
    torch: Any = import_module("torch")
    for index in range(torch.cuda.device_count()):
        device = f"gpu/{index}"
        try:
            words = _gpu_matmul(torch, index) if name == "matmul" else _gpu_memory(torch, index)
        except (Wrong, RuntimeError) as error:
            yield CheckResult(name=name, state="failed", device=device, evidence=f"{error}"[:512])
        else:
            yield CheckResult(name=name, state="ok", device=device, evidence=words)


def _gpu_matmul(torch: Any, index: int) -> str:
    where = f"cuda:{index}"
    torch.backends.cuda.matmul.allow_tf32 = False

    def multiply(a: Any, b: Any) -> Any:
        left, right = torch.from_numpy(a).to(where), torch.from_numpy(b).to(where)
        return (left @ right).cpu().numpy()

    matmul(multiply)
    block = torch.ones((_GPU_SIZE, _GPU_SIZE), device=where, dtype=torch.bfloat16)
    torch.cuda.synchronize(index)
    began = time.perf_counter()
    for _ in range(8):
        block @ block
    torch.cuda.synchronize(index)
    rate = 8 * 2 * _GPU_SIZE**3 / (time.perf_counter() - began)
    return f"products are right, {rate / 1e12:.0f} TFLOP/s in bfloat16"


def _gpu_memory(torch: Any, index: int) -> str:
    free, _ = torch.cuda.mem_get_info(index)
    size = min(free // 2, 8 << 30)
    block = torch.empty(size, dtype=torch.uint8, device=f"cuda:{index}")
    for pattern in _PATTERNS:
        block.fill_(pattern)
        wrong = int((block != pattern).sum())
        if wrong:
            raise Wrong(f"{wrong} of {size} bytes are not {pattern:#04x} as they were written")
    return f"{size >> 20} MiB hold what is written"


def results(names: Sequence[str], directory: Path) -> Iterator[CheckResult]:
    """Yield the results of the checks *names* in this process."""
    on_host: Mapping[str, Callable[[], str]] = {
        "matmul": matmul,
        "memory": memory,
        "disk": lambda: disk(directory),
    }
    for name in names:
        try:
            words = on_host[name]()
        except (Wrong, OSError, MemoryError) as error:
            yield CheckResult(name=name, state="failed", evidence=f"{error}"[:512])
        else:
            yield CheckResult(name=name, state="ok", evidence=words)
        if name != "disk":
            yield from _on_gpus(name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the checks that the command line names, and write the results as JSON."""
    parser = argparse.ArgumentParser(prog=f"python -m {__name__}")
    parser.add_argument("names", nargs="+", choices=("matmul", "memory", "disk"))
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))  # noqa: S108
    told = parser.parse_args(arguments)
    found = list(results(told.names, told.directory))
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
