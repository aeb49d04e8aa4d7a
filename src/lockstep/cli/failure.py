"""The one way in which a command fails."""

from __future__ import annotations


class CommandFailed(Exception):
    """A command could not do what it was asked; *hint* says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
