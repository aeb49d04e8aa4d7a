"""The two ways in which a command fails."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

COLLECTIONS = (50_000, 20, 100)
"""Objects between two looks for cycles, and how many such looks between two that look farther back.
What is loaded and read at a start is no garbage, and Python would walk it again and again."""


class CommandFailed(Exception):
    """A command could not do what it was asked; *hint* says what to do next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BadInput(CommandFailed):
    """What was given is wrong: a file, or how options go together."""

    exit_code = 2


@contextmanager
def usage(hint: str) -> Iterator[None]:
    """Report a ValueError inside as wrong usage of the argument or option *hint*."""
    try:
        yield
    except ValueError as error:
        # Parts run without it: it takes 8 MiB.
        import typer

        raise typer.BadParameter(str(error), param_hint=hint) from error


def reported(work: Callable[[], object]) -> None:
    """Do *work*; when it fails say so on standard error and end the process with its exit code."""
    gc.set_threshold(*COLLECTIONS)
    try:
        work()
    except CommandFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        if failure.hint:
            print(f"hint: {failure.hint}", file=sys.stderr)
        sys.exit(failure.exit_code)
