"""What the end of a program's log says of its failure, in one line."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 300
_RULE: Final = re.compile(r"[\W_]*")
"""Lines of dashes and the like."""
_ERROR: Final = re.compile(
    r"(?:\[\w-]+\]:\s*)?(?:[\w.]*(?:Error|Exception|Interrupt)|\S*python\S*): \S.*"
)
_ROOT_CAUSE: Final = "Root Cause (first observed failure):"
_BLOCK: Final = re.compile(r"^-{40,}\n(\S.*?)\n-{40,}\s*\Z", re.MULTILINE | re.DOTALL)
"""What Open MPI ends with when it gives up: a text between two lines of dashes."""
_FACT: Final = re.compile(r"\s*(rank|exitcode)\s*: (-?\d+)", re.MULTILINE)


def last_words(log: str) -> str:
    """Return the line of *log*'s end that says most: of torchrun's report the root
    cause, of Open MPI's the first paragraph.
    """
    if block := _BLOCK.search(log):
        return " ".join(block[1].split("\n\n")[0].split())[:_LONGEST]
    lines = [line.strip() for line in log.splitlines() if not _RULE.fullmatch(line)]
    before, cause, after = log.partition(_ROOT_CAUSE)
    if not cause:
        return lines[-1][:_LONGEST] if lines else ""
    facts = dict(_FACT.findall(after))
    errors = [e for e in map(str.strip, before.splitlines()) if _ERROR.fullmatch(e)]
    words = f"rank {facts.get('rank', '?')} ended with exit code {facts.get('exitcode', '?')}"
    return f"{words}: {errors[-1]}"[:_LONGEST] if errors else words
