"""Commands and their output as documentation pages show them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANY = "..."
"""In a line of output: any text; alone on a line: any lines."""


@dataclass
class DocCommand:
    """One command of a page, and the output below it."""

    words: list[str]
    output: list[str] = field(default_factory=list)

    def shown(self, printed: str) -> bool:
        """Say whether *printed* is what the page shows."""
        return re.fullmatch(_pattern(self.output), printed.rstrip() + "\n") is not None


def commands(page: Path) -> list[DocCommand]:
    """Return the commands of the page's console blocks, in order."""
    found: list[DocCommand] = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(DocCommand(shlex.split(line[2:])))
            else:
                found[-1].output.append(line)
    return found


def python_block(page: Path) -> str:
    """Return the page's first block of Python."""
    found = re.search(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no block of Python"
    return found.group(1)


def _pattern(lines: list[str]) -> str:
    parts = []
    for line in lines:
        if line == ANY:
            parts.append(r"(?:.*\n)*?")
        else:
            words = (re.escape(part) for part in re.split(r"\s*\.\.\.\s*", line))
            parts.append(r".*?".join(words) + r"\n")
    return "".join(parts)
