"""From what a client sent to what may be stored: fields, defaults, validation, ownership."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.apiserver import status
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.patch import Writer, track

Json = dict[str, Any]


def read_fields(served: Served, obj: Json, validation: str) -> list[str]:
    """Drop the fields of *obj* that its kind does not have, and return warnings about them.

    *validation* is the request's ``fieldValidation``.

    Raises:
        StatusError: when a field has the wrong type, or, with ``Strict``, does not exist.
    """
    kind = served.kind
    if served.schema.fits(obj) and not served.schema.node.loose:
        return []
    if error := served.schema.decoding_error(obj):
        raise status.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'
        )
    warnings = [f'unknown field "{path}"' for path in served.schema.prune(obj)]
    if warnings and validation == "Strict":
        text = ", ".join(warnings)
        raise status.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {text}"
        )
    return warnings if validation == "Warn" else []


def complete(served: Served, new: Json, old: Json | None) -> None:
    """Fill in the defaults of *new*.

    Those that another field's value decides come after those that the schema states.
    """
    served.schema.default(new)
    served.kind.prepare(new, old)


def validate(served: Served, new: Json, old: Json | None) -> None:
    """Require that *new*, which replaces *old* where that is given, is in order.

    Raises:
        StatusError: when it is not, with all that is wrong.
    """
    kind = served.kind
    causes = kind.validate(new, old)
    if served.custom or served.schema.node.checked:
        causes = [*served.schema.validate(new, old), *causes]
    if causes:
        raise status.invalid(kind.group, kind.kind, new["metadata"]["name"], _distinct(causes))


def _distinct(causes: Sequence[Any]) -> list[Any]:
    return list({(c.field, c.reason): c for c in reversed(causes)}.values())[::-1]


def claim(
    served: Served, new: Json, old: Json | None, *, manager: str, now: float, subresource: str = ""
) -> None:
    """Note in ``managedFields`` of *new* what this write has set."""
    track(old, new, served.type, Writer(manager, served.kind.api_version, now, subresource))
