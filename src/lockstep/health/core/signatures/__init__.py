"""All signatures as one table; matching takes time linear in the length of a line."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures.kernel import KERNEL
from lockstep.health.core.signatures.machine import MACHINE
from lockstep.health.core.signatures.nccl import NCCL
from lockstep.health.core.signatures.parts import FALLBACK
from lockstep.health.core.signatures.program import GENERIC, PROGRAM
from lockstep.health.core.signatures.runtime import RUNTIME
from lockstep.health.core.signatures.submissions import SUBMISSIONS
from lockstep.health.core.signatures.surroundings import SURROUNDINGS
from lockstep.health.core.signatures.xids import signatures as xids

SIGNATURES: Final[tuple[Signature, ...]] = (
    *xids(),
    *KERNEL,
    *NCCL,
    *PROGRAM,
    *MACHINE,
    *SUBMISSIONS,
    *RUNTIME,
    *SURROUNDINGS,
    *GENERIC,
    *FALLBACK,
)
"""The first that matches a line is taken: explained ones first, then those that say little."""


@cache
def _table(kernel: bool) -> tuple[Any, tuple[Signature, ...]]:
    import re2

    some = tuple(one for one in SIGNATURES if not kernel or one.where == "kernel")
    table = re2.Set.SearchSet()
    for one in some:
        table.Add(one.pattern)
    table.Compile()
    return table, some


@cache
def _any() -> Any:
    import re2

    some = (one.pattern for one in SIGNATURES if one.where == "kernel")
    return re2.compile("(?m)" + "|".join(f"(?:{one})" for one in some))


def fits(text: str) -> bool:
    """Say whether any of the lines of *text* may fit a kernel's signature."""
    return _any().search(text) is not None


def match(line: str, kernel: bool = False) -> Signature | None:
    """Return the first signature that *line* fits; with *kernel* of those of a kernel alone."""
    table, some = _table(kernel)
    found = table.Match(line)
    return some[min(found)] if found else None
