"""The two ways in which a command fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import typer


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
        raise typer.BadParameter(str(error), param_hint=hint) from error
