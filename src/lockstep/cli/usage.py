"""Wrong usage: told by the framework, with exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def usage(hint: str) -> Iterator[None]:
    """Report a ValueError inside as wrong usage of the argument or option *hint*."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error
