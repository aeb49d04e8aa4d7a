"""From what a client sent to what may be stored: fields, defaults, validation, ownership."""

from __future__ import annotations

from dataclasses import replace

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.patch import Writer, track

_STATUS = frozenset({"status"})


class Unreadable(status.StatusError):
    """An object that cannot be read as its kind."""

    def __init__(self, kind: str, version: str, why: str) -> None:
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'
        super().__init__(400, "BadRequest", message)
        self.why = why


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
        raise Unreadable(kind.kind, kind.version, error)
    warnings = [f'unknown field "{path}"' for path in served.schema.prune(obj)]
    if warnings and validation == "Strict":
        text = ", ".join(warnings)
        raise Unreadable(kind.kind, kind.version, f"strict decoding error: {text}")
    return warnings if validation == "Warn" else []


def complete(served: Served, new: Json, old: Json | None) -> None:
    """Fill in the defaults of *new*.

    Those that another field's value decides come after those that the schema states.
    """
    served.schema.default(new)
    served.kind.prepare(new, old)


def begin(served: Served, new: Json) -> None:
    """Fill in what the server itself decides about a new object."""
    served.kind.begin(new)


def validate(served: Served, new: Json, old: Json | None, subresource: str = "") -> None:
    """Require that *new*, which replaces *old* where that is given, is in order.

    Raises:
        StatusError: when it is not, with all that is wrong.
    """
    kind = served.kind
    causes = kind.validate(new, old)
    if served.custom or served.schema.node.checked:
        found = served.schema.validate(new, old)
        if served.custom and subresource == "status":
            # It is checked by itself, so what is wrong with it is said without where it stands.
            found = [replace(c, message=c.message.replace(": status.", ": ")) for c in found]
        known = {(cause.field, cause.reason) for cause in found}
        causes = [*found, *(c for c in causes if (c.field, c.reason) not in known)]
    if causes:
        # Both groups that serve events have one code that checks them.
        group = kind.storage[0] if kind.plural == "events" else kind.group
        raise status.invalid(group, kind.kind, new["metadata"]["name"], causes)


def claim(
    served: Served, new: Json, old: Json | None, *, manager: str, now: float, subresource: str = ""
) -> None:
    """Note in ``managedFields`` of *new* what this write has set.

    It comes after the defaults and before everything that the server decides, which belongs to
    no manager. The status is not for those to claim who cannot write it.
    """
    by = Writer(manager, served.kind.api_version, now, subresource)
    keeps_status = served.kind.has_status and not subresource
    track(old, new, served.type, by, ignored=_STATUS if keeps_status else frozenset())
