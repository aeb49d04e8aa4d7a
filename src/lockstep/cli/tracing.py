"""``estimate -- python train.py``: a script traced in its own Python, told as memory of a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lockstep import train
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.output import note, print_table
from lockstep.cli.views.table import Column, table
from lockstep.insight.memory import allocator
from lockstep.insight.memory.formulas import CONTEXT_BYTES, FRAGMENTED, GIB

STEPS: Final = 2
"""The optimizer makes its state in the first; the second has all of it."""
_LONGEST: Final = 600.0


@dataclass(frozen=True, slots=True)
class Traced:
    """What a script holds: bytes at the peak, by parts, and what an allocator reserves for it."""

    params: int
    parts: dict[str, int]
    allocated: int
    reserved: int
    stood_in: int
    """Values that the script asked for and that were made up."""

    @property
    def likely(self) -> float:
        """Return the bytes that a GPU has in use."""
        return self.reserved + CONTEXT_BYTES

    @property
    def most(self) -> float:
        """Return the bytes with bad fragmentation: what a card should have."""
        return max(self.reserved, self.allocated * (1 + FRAGMENTED[1])) + CONTEXT_BYTES


def trace(command: Sequence[str], ranks: int) -> Traced:
    """Return what the script of *command* holds as one of *ranks*.

    Raises:
        BadInput: when *command* names no script.
        CommandFailed: when it cannot be traced; the message names the operator and the line.
    """
    python, script = _script(command)
    tracer = Path(train.__file__).parent / "tracing.py"
    with tempfile.TemporaryDirectory(prefix="lockstep-trace-") as folder:
        result = Path(folder) / "result.json"
        env = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(ranks)}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "LOCAL_WORLD_SIZE": str(ranks)}
        asked = [python, str(tracer), str(STEPS), str(result), *script]
        try:
            done = subprocess.run(  # noqa: S603  the user's own script
                asked, env=env, stdout=sys.stderr, timeout=_LONGEST, check=False
            )
        except FileNotFoundError:
            raise BadInput(f"there is no program {python!r}") from None
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"two steps were not traced within {_LONGEST:g} s") from None
        if not result.is_file():
            raise CommandFailed(f"the script ended with code {done.returncode} before a step")
        return _read(json.loads(result.read_text()))


def _script(command: Sequence[str]) -> tuple[str, list[str]]:
    at = next((i for i, word in enumerate(command) if word.endswith(".py")), None)
    if at is None:
        raise BadInput(f"{' '.join(command)!r} names no script: lockstep estimate -- python t.py")
    first = command[0]
    python = first if Path(first).name.startswith("python") and at > 0 else sys.executable
    return python, list(command[at:])


def _read(found: dict[str, Any]) -> Traced:
    if "error" in found:
        where = f" at {found['line']}" if found["line"] else ""
        what = (
            f"{found['operator']} cannot be traced" if found["operator"] else "it cannot be traced"
        )
        raise CommandFailed(
            f"{what}{where}: {found['error']}",
            "formulas take its place, with a wider range: lockstep estimate --params 7e9",
        )
    if found["steps"] < STEPS:
        raise CommandFailed(
            f"the script ended after {found['steps']} steps of a torch optimizer, not {STEPS}"
        )
    kept = allocator.replay((key, size) for key, size in found["events"])
    return Traced(found["params"], found["bytes"], kept.allocated, kept.reserved, found["stoodIn"])


def show(traced: Traced, limit: int, *, as_json: bool) -> None:
    """Print it; with *limit* say whether it fits a card of so many bytes."""
    if as_json:
        print(json.dumps(_tree(traced, limit), indent=2), flush=True)
        return
    rows = [(name, f"{size / GIB:.3f}") for name, size in traced.parts.items()]
    rows.append(("held by the allocator", f"{traced.reserved / GIB:.3f}"))
    rows.append(("likely in use", f"{traced.likely / GIB:.3f}"))
    rows.append(("at most", f"{traced.most / GIB:.3f}"))
    print_table(table(("On each GPU", Column("GiB", number=True)), rows))
    note(f"{traced.params:,} parameters; {STEPS} steps traced, nothing was computed")
    if traced.stood_in:
        note(f"{traced.stood_in} values that the script asked for were made up as 1")
    if limit:
        fits = "fits" if traced.most <= limit else "may not fit"
        fits = "does not fit" if traced.likely > limit else fits
        note(f"{fits} {limit / GIB:.0f} GiB")


def _tree(traced: Traced, limit: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "params": traced.params,
        "bytes": traced.parts,
        "allocated": traced.allocated,
        "reserved": traced.reserved,
        "likely": round(traced.likely),
        "most": round(traced.most),
        "stoodIn": traced.stood_in,
    }
    if limit:
        found |= {"card": limit, "fits": traced.most <= limit}
    return found
