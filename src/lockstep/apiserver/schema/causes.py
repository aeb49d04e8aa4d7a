"""What is wrong with one field, in the words of the Kubernetes API.

The reasons and the shape of the messages are the wire contract of ``Status.details.causes``:
clients show them and some match on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why a field was refused (``metav1.CauseType``)."""

    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_FOUND = "FieldValueNotFound"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_SHORT = "FieldValueTooShort"
    TOO_MANY = "FieldValueTooMany"
    TOO_FEW = "FieldValueTooFew"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


@dataclass(frozen=True, slots=True)
class Cause:
    """One refused field: its path, the reason, and the message without the path."""

    field: str
    reason: Reason
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> Cause:
    """Say that *field* must be there."""
    return Cause(field, Reason.REQUIRED, _with("Required value", detail))


def forbidden(field: str, detail: str = "") -> Cause:
    """Say that *field* must not be set, or must not change."""
    return Cause(field, Reason.FORBIDDEN, _with("Forbidden", detail))


def invalid(field: str, value: Any, detail: str) -> Cause:
    """Say that the *value* of *field* is not acceptable."""
    return Cause(field, Reason.INVALID, _with(f"Invalid value: {show(value)}", detail))


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    """Say that *value* has the wrong JSON type."""
    return Cause(field, Reason.TYPE_INVALID, _with(f"Invalid value: {show(value)}", detail))


def not_found(field: str, value: Any) -> Cause:
    """Say that what *field* names does not exist."""
    return Cause(field, Reason.NOT_FOUND, f"Not found: {show(value)}")


def duplicate(field: str, value: Any) -> Cause:
    """Say that *value* is there twice where it must be unique."""
    return Cause(field, Reason.DUPLICATE, f"Duplicate value: {show(value)}")


def too_long(field: str, limit: int) -> Cause:
    """Say that a text has more than *limit* bytes."""
    detail = f"may not be more than {limit} {_plural('byte', limit)}"
    return Cause(field, Reason.TOO_LONG, f"Too long: {detail}")


def too_many(field: str, actual: int, limit: int) -> Cause:
    """Say that a list or map with *actual* items holds more than *limit*."""
    detail = f"must have at most {limit} {_plural('item', limit)}"
    return Cause(field, Reason.TOO_MANY, f"Too many: {actual}: {detail}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """Say that *value* is none of the *supported* ones."""
    choices = ", ".join(show(v) for v in supported)
    detail = f"supported values: {choices}" if choices else ""
    return Cause(field, Reason.NOT_SUPPORTED, _with(f"Unsupported value: {show(value)}", detail))


def show(value: Any) -> str:
    """Return *value* as Kubernetes prints refused values: compact JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _with(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head
