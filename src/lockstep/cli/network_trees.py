"""Records this machine's tree, and judges recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockstep.api.topology import Rail
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.network_check import filled, whole
from lockstep.devices.network.checklist import about, checks, recorded_matrix, verdict
from lockstep.devices.network.recording import record
from lockstep.devices.network.tree import Tree, trees


def write_down(folder: Path) -> str:
    """Record this machine's tree; return what was done.

    Raises:
        BadInput: when the folder cannot be used.
    """
    try:
        count = record(folder)
    except ValueError as error:
        raise BadInput(f"--record: {error}") from None
    except OSError as error:
        raise CommandFailed(f"--record: {folder}: {error.strerror}") from None
    return f"{count} files in {folder}; `lockstep network check --tree {folder}` reads them"


def judged(folder: Path | None, rails: Sequence[Rail]) -> dict[str, Any]:
    """Return checks and verdict about recorded trees, or about this machine without a folder.

    Raises:
        BadInput: when there is no tree in it.
    """
    try:
        seen = [about(one, rails) for one in (trees(folder) if folder else [Tree()])]
        found = checks(seen)
        matrix = folder / "matrix.json" if folder else None
        if matrix is not None and matrix.is_file():
            found += recorded_matrix(matrix.read_text(errors="replace"))
    except ValueError as error:
        raise BadInput(f"--tree: {error}") from None
    return {"checks": whole(found), "verdict": filled(verdict(found))}
