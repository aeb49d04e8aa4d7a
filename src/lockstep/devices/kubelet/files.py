"""Files of this node that others read while they are written anew."""

from __future__ import annotations

from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file as a whole: after a crash there is the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
