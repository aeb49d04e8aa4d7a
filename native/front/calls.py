"""Make ``calls.def``: every call of CUDA's driver, those that the front answers itself marked.

Usage: python native/front/calls.py CUDA_H...    with the headers of the releases to be covered.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """/* Every call of the driver (CUDA 11.8 to 13): OWN is answered by the front, PASS
 * handed on as it is. calls.py makes this from CUDA's headers and the front's sources. */
"""
ELSEWHERE = ("cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop")
"""Calls of other headers that programs use."""
OPENGL = ("cuGLGetDevices_v2", "cuGraphicsGLRegisterBuffer", "cuGraphicsGLRegisterImage")


def declared(header: str) -> set[str]:
    """Return the names that a driver exports for a header: versions and kinds of streams too."""
    found = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", header))
    found |= set(re.findall(r"#\s*define\s+cu[A-Z]\w+\s+(cu[A-Z]\w+)\s*$", header, re.M))
    kinds = re.findall(r"#\s*define\s+cu[A-Z]\w+\s+__CUDA_API_(PTSZ|PTDS)\((\w+)\)", header)
    return found | {one for kind, name in kinds for one in (name, f"{name}_{kind.lower()}")}


def own() -> set[str]:
    """Return the calls that the front's sources define."""
    text = "".join(one.read_text() for one in HERE.glob("*.c"))
    plain = set(re.findall(r"^\s*CUresult (cu\w+)\(", text, re.M))
    both = re.findall(r"CUresult (cu\w+)##suffix\(", text)
    waited = re.findall(r"CUresult (cu\w+)##kind\(", text)
    return (
        plain
        | {one for name in both for one in (name, f"{name}_ptsz")}
        | {one for name in waited for one in (name, f"{name}_ptds")}
    )


def known() -> set[str]:
    """Return the names that are in the table already."""
    table = HERE / "calls.def"
    return set(re.findall(r"\w+\((cu\w+)\)", table.read_text())) if table.exists() else set()


def main() -> None:
    """Write the table anew; without headers, with the names that it has."""
    ours = own()
    headers = [Path(one).read_text() for one in sys.argv[1:]]
    names = set().union(*map(declared, headers)) | known() | ours | {*ELSEWHERE, *OPENGL}
    lines = [f"{'OWN' if name in ours else 'PASS'}({name})\n" for name in sorted(names)]
    (HERE / "calls.def").write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()
