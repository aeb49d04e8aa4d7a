"""Functions over 40 lines and files over 400, in ``src``.

A function's lines are those of its body: neither decorators and signature count, which Typer makes
long where a command has many options, nor the docstring. Of a function within another both count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FUNCTION: Final = 40
FILE: Final = 400
WHOLE: Final = {
    "src/lockstep/notebooks/inside/session_state.py": "kernels without Lockstep load this one file",
}
"""Files that cannot be split, and why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def body_lines(function: Function) -> int:
    """Return how many lines a function has from its first statement to its last."""
    statements = function.body
    if ast.get_docstring(function, clean=False) is not None:
        statements = statements[1:]
    if not statements:
        return 0
    return (function.end_lineno or 0) - statements[0].lineno + 1


def long_functions(text: str) -> Iterator[tuple[Function, int]]:
    """Yield each function of a file that is too long, with its lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and (lines := body_lines(node)) > FUNCTION:
            yield node, lines


def faults(root: Path) -> list[str]:
    """Return a line for each file and function that is too long."""
    found: list[str] = []
    for path in sorted((root / "src").rglob("*.py")):
        text, name = path.read_text(), path.relative_to(root).as_posix()
        if (lines := text.count("\n")) > FILE and name not in WHOLE:
            found.append(f"{name}: {lines} lines, {FILE} at most; move one of its ideas to a file")
        for function, size in long_functions(text):
            where = f"{name}:{function.lineno}: {function.name}"
            found.append(f"{where} has {size} lines, {FUNCTION} at most; take a step out of it")
    return found
