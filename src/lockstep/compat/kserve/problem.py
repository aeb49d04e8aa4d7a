"""What is wrong with an object, so that its user can put it right."""

from __future__ import annotations

from typing import Any


class Problem(ValueError):
    """A field whose value cannot be served; the message names field, value and remedy."""

    def __init__(self, field: str, value: Any, remedy: str, reason: str = "InvalidSpec") -> None:
        super().__init__(f"{field}: {value!r}: {remedy}")
        self.field, self.value, self.remedy = field, value, remedy
        self.reason = reason

    def moved(self, before: str, after: str) -> Problem:
        """Return the same problem of a field that stands at *after* in place of *before*."""
        field = self.field.replace(before, after, 1)
        return Problem(field, self.value, self.remedy, self.reason)
