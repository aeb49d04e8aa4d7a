"""Make ``calls.def``: every call of CUDA's driver, by the names under which programs find it.

Usage: python native/front/calls.py DIRECTORY...

Each directory holds ``cuda.h`` and ``cudaTypedefs.h`` of one release (the packages
``nvidia-cuda-runtime-cu11``, ``-cu12`` and ``nvidia-cuda-runtime`` have them). Without a
directory the rows are kept and only sorted anew into the kinds below.

A row is ``KIND(symbol, base, version, per_thread)``: ``cuGetProcAddress`` asked for *base* gives
*symbol* from that *version* of CUDA on. ``OWN`` is answered by the front's sources, ``PASS`` is
handed on as it is. ``WORK`` gives the card work and goes through the gate; its row goes on with
parameters, arguments, the stream, what tells its kind of work, and whether its call waits for it.
``NAMED`` is one more name of a call.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
HEAD = """/* Every call of the driver (CUDA 11.8 to 13.5). calls.py makes this from the names,
 * versions and parameters that CUDA's headers declare. */
"""
GATED = re.compile(
    r"cu(Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset|MemPrefetch|MemDiscardAndPrefetch|MemBatchDecompress|FabricCpy)"
)
"""Calls that use the card's time."""
PLAIN = {
    "size_t": "size_t",
    "unsigned int": "unsigned",
    "int": "int",
    "unsigned char": "unsigned char",
    "unsigned short": "unsigned short",
    "unsigned long long": "unsigned long long",
    "CUdeviceptr_v2": "CUdeviceptr",
    "CUdeviceptr": "CUdeviceptr",
    "CUdeviceptr_v1": "unsigned",
    "CUdevice_v1": "CUdevice",
    "CUdevice": "CUdevice",
    "CUmemLocation": "CUlocation",
    "CUmemLocation_v1": "CUlocation",
}
"""What is passed by value; all else is a pointer."""


class Row(NamedTuple):
    """One call: the symbol, and how ``cuGetProcAddress`` tells it from its siblings."""

    symbol: str
    base: str
    version: int
    per_thread: int
    parameters: tuple[str, ...] = ()


def exported(header: str) -> set[str]:
    """Return the symbols that a driver exports for a header: versions and kinds of streams too."""
    found = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", header))
    found |= set(re.findall(r"#\s*define\s+cu[A-Z]\w+\s+(cu[A-Z]\w+)\s*$", header, re.M))
    kinds = re.findall(r"#\s*define\s+cu[A-Z]\w+\s+__CUDA_API_(PTSZ|PTDS)\((\w+)\)", header)
    return found | {one for kind, name in kinds for one in (name, f"{name}_{kind.lower()}")}


def renamed(header: str) -> set[tuple[str, str, int]]:
    """Return names that mean another call from a major release on, that call, and the release."""
    version = re.search(r"#\s*define\s+CUDA_VERSION\s+(\d+)", header)
    major = int(version[1]) // 1000 * 1000 if version else 0
    pairs = re.findall(r"^#\s*define\s+(cu[A-Z]\w+)\s+(cu[A-Z]\w+)\s*$", header, re.M)
    return {(name, target, major) for name, target in pairs if _base(target)[0] != name}


def typed(header: str) -> dict[tuple[str, int, str], tuple[str, ...]]:
    """Return the parameters of each call by base name, version and kind of stream."""
    pattern = r"PFN_(cu\w+?)_v(\d+)(?:_(ptsz|ptds))?\)\(([^;]*)\);"
    return {
        (base, int(version), kind or ""): _types(text)
        for base, version, kind, text in re.findall(pattern, header)
    }


def _types(text: str) -> tuple[str, ...]:
    return () if text.strip() == "void" else tuple(map(_type, text.split(",")))


def _type(text: str) -> str:
    if "*" in text or "[" in text:
        return "void *"
    name = " ".join(text.replace("const", "").split()[:-1])
    return "CUstream" if name == "CUstream" else PLAIN.get(name, "void *")


def rows(directories: list[Path]) -> dict[str, Row]:
    """Return a row for each symbol of the releases in *directories*."""
    symbols: set[str] = set()
    types: dict[tuple[str, int, str], tuple[str, ...]] = {}
    for one in directories:
        symbols |= exported((one / "cuda.h").read_text())
        types |= typed((one / "cudaTypedefs.h").read_text())
    versions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for base, version, kind in sorted(types):
        versions[base, kind].append(version)
    found = {}
    siblings: dict[tuple[str, str], list[str]] = defaultdict(list)
    for symbol in symbols:
        siblings[_base(symbol)].append(symbol)
    for (base, kind), group in siblings.items():
        group.sort(key=lambda one: int((re.search(r"_v(\d)", one) or ["", "1"])[1]))
        known = versions[base, kind]
        # The newest symbol has the newest version; where there are fewer versions, the oldest
        # symbols have none of their own.
        for place, symbol in enumerate(reversed(group), 1):
            version = known[-place] if place <= len(known) else 0
            parameters = types.get((base, version, kind), ())
            found[symbol] = Row(symbol, base, version, int(bool(kind)), parameters)
    return found


def _base(symbol: str) -> tuple[str, str]:
    name, _, kind = re.sub(r"_(ptsz|ptds)$", r" \1", symbol).partition(" ")
    return re.sub(r"_v\d$", "", name), kind


def own() -> set[str]:
    """Return the calls that the front's sources define."""
    text = "".join(one.read_text() for one in HERE.glob("*.c"))
    plain = set(re.findall(r"^\s*CUresult (cu\w+)\([^;{]*\{", text, re.M))
    both = re.findall(r"CUresult (cu\w+)##suffix\(", text)
    return plain | {one for name in both for one in (name, f"{name}_ptsz")}


def line(row: Row, ours: set[str]) -> str:
    """Return a row as the table has it."""
    about = f"{row.symbol}, {row.base}, {row.version}, {row.per_thread}"
    if row.symbol in ours:
        return f"OWN({about})\n"
    if not row.parameters or not GATED.match(row.symbol):
        return f"PASS({about})\n"
    names = [f"a{i}" for i in range(len(row.parameters))]
    declared = [
        f"{one} {name}".replace("* ", "*") for one, name in zip(row.parameters, names, strict=True)
    ]
    streams = [n for one, n in zip(row.parameters, names, strict=True) if one == "CUstream"]
    stream = streams[0] if streams else "NULL"
    key = f"{_tag(row.symbol):#x}"
    sizes = [n for one, n in zip(row.parameters, names, strict=True) if one == "size_t"]
    if sizes:
        key = f"size_key({key}, {' | '.join(sizes)})"
    if "Launch" in row.symbol:
        key = "(uintptr_t)a0"
    if row.base == "cuLaunchKernelEx":
        stream, key = "((const CUlaunchConfig *)a0)->stream", "(uintptr_t)a1"
    if row.base == "cuLaunchCooperativeKernelMultiDevice":
        stream, key = (
            "((const CUlaunchOne *)a0)->stream",
            "(uintptr_t)((const CUlaunchOne *)a0)->function",
        )
    waits = "LATER" if streams else _waits(row)
    call = f"({', '.join(declared)}), ({', '.join(names)})"
    return f"WORK({about}, {call}, {stream}, {key}, {waits})\n"


def _waits(row: Row) -> str:
    """Return whether the work of a call without a stream is over when the call comes back."""
    if not row.base.startswith("cuMemcpy"):
        return "LATER"
    if re.search("[HDA]to[HDA]", row.base) and "H" in row.base:
        return "OVER"
    # CUDA_MEMCPY2D, CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, where their srcMemoryType and
    # dstMemoryType are; those of CUDA 2 had other members.
    if re.match("cuMemcpy(2D|3D)", row.base) and row.version > 2000:
        return "waits_by(a0, 16, 72)" if "2D" in row.base else "waits_by(a0, 32, 120)"
    return "PERHAPS"


def _tag(symbol: str) -> int:
    """Return a number that tells calls apart, the same in every run."""
    found = 0
    for letter in symbol:
        found = (found * 131 + ord(letter)) % 2**31
    return found << 8


def aliases(directories: list[Path]) -> list[str]:
    """Return the rows of names that mean another call from some release on."""
    first: dict[tuple[str, str], int] = {}
    for one in directories:
        header = (one / "cuda.h").read_text()
        for name, target, major in renamed(header):
            if re.search(r"_v\d$", name):
                continue
            first[name, target] = min(major, first.get((name, target), major))
    return [f"NAMED({target}, {name}, {major}, 0)\n" for (name, target), major in first.items()]


def table_text() -> str:
    """Return the table as it is."""
    return (HERE / "calls.def").read_text()


def kept() -> dict[str, Row]:
    """Return the rows that the table has, with what their parameters are."""
    found = {}
    for text in table_text().splitlines():
        match = re.match(r"(?!NAMED)\w+\((\w+), (\w+), (\d+), (\d)(?:, \((.*?)\), \()?", text)
        if match:
            declared = tuple(filter(None, (match[5] or "").split(", ")))
            types = tuple(re.sub(r" ?a\d+$", "", one) for one in declared)
            found[match[1]] = Row(match[1], match[2], int(match[3]), int(match[4]), types)
    return found


def main() -> None:
    """Write the table anew."""
    directories = [Path(one) for one in sys.argv[1:]]
    # What other headers declare (EGL, OpenGL, VDPAU) stays from before.
    table = kept() | rows(directories)
    ours = own()
    for symbol in ours - set(table):
        base, kind = _base(symbol)
        table[symbol] = Row(symbol, base, 0, int(bool(kind)))
    old = [f"{one}\n" for one in table_text().splitlines() if one.startswith("NAMED")]
    text = "".join(line(table[symbol], ours) for symbol in sorted(table))
    text += "".join(sorted(aliases(directories) if directories else old))
    (HERE / "calls.def").write_text(HEAD + text)


if __name__ == "__main__":
    main()
