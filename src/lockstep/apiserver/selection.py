"""Which objects a list or a watch is about."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.api.selectors import FieldMatch, SelectorError, parse_fields, parse_labels
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.status import bad_request
from lockstep.apiserver.store import Record
from lockstep.http import Request

Match = Callable[[Record], bool]


def selection(served: Served, request: Request) -> Match | None:
    """Return the test that the request's selectors describe; None where all objects pass.

    Raises:
        StatusError: when a selector cannot be read or a field cannot be selected by.
    """
    query = request.query
    label_text, field_text = query.get("labelSelector"), query.get("fieldSelector")
    if not label_text and not field_text:
        return None
    try:
        labels = parse_labels(label_text or "")
        fields = parse_fields(field_text or "")
        fields.require(served.selectable)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    by_field = _by_field(served, fields)
    if labels.everything:
        return by_field
    if by_field is None:
        return lambda record: labels.matches(record.meta.labels)
    return lambda record: labels.matches(record.meta.labels) and by_field(record)


def _by_field(served: Served, fields: FieldMatch) -> Match | None:
    if fields.everything:
        return None
    names = {"metadata.name", "metadata.namespace"}
    if all(field in names for field, _, _ in fields.terms):
        # Every watch of one object asks this; it needs no look into the object.
        def by_name(record: Record) -> bool:
            key = record.key
            return fields.matches({"metadata.name": key.name, "metadata.namespace": key.namespace})

        return by_name
    return lambda record: fields.matches(record.fields(served.field_values))
