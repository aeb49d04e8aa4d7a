"""Pages of a list: continue tokens pinned to the revision of the first page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lockstep.apiserver import status
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.store import Compacted, Record, Store

_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class _Wire(msgspec.Struct):
    v: str
    rv: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Token:
    """Where the next page begins, and at which revision; -1 takes the present one."""

    revision: int
    namespace: str
    name: str

    def __str__(self) -> str:
        wire = _Wire("meta.k8s.io/v1", self.revision, self.namespace, self.name)
        return base64.urlsafe_b64encode(msgspec.json.encode(wire)).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token back.

        Raises:
            StatusError: when it is none of ours.
        """
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            wire = msgspec.json.decode(data, type=_Wire)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            raise status.bad_request("continue key is not valid") from None
        return cls(wire.rv, wire.namespace, wire.name)


def at_revision(
    store: Store, call: Call, token: Token | None, limit: int
) -> tuple[list[Record], int]:
    """Return the objects that the list is about, unselected, and their revision.

    Raises:
        StatusError: when the revision asked for is gone or not there yet.
    """
    resource, namespace = call.served.storage, call.route.namespace
    revision = _wanted(store, call, token, limit)
    if revision is None or revision == store.revision:
        return store.objects(resource, namespace), store.revision
    try:
        return store.objects_at(resource, namespace, revision), revision
    except Compacted as gone:
        if token is None:
            raise status.expired(str(gone)) from None
        fresh = Token(-1, token.namespace, token.name)
        raise status.expired(_GONE, continue_token=str(fresh)) from None


def _wanted(store: Store, call: Call, token: Token | None, limit: int) -> int | None:
    query = call.request.query
    match, text = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if token is not None:
        if text not in ("", "0"):
            raise status.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return token.revision if token.revision > 0 else None
    if match not in ("", "Exact", "NotOlderThan"):
        raise status.bad_request(f'resourceVersionMatch: Unsupported value: "{match}"')
    if match and not text:
        raise status.bad_request("resourceVersionMatch is forbidden unless resourceVersion is set")
    if text in ("", "0"):
        if match == "Exact":
            raise status.bad_request('resourceVersionMatch "exact" is forbidden for version "0"')
        return None
    if not text.isascii() or not text.isdigit():
        raise status.bad_request(f'resourceVersion: Invalid value: "{text}"')
    revision = int(text)
    if revision > store.revision:
        raise status.too_large_version(revision, store.revision)
    # With a limit and no match, clients of old expect exactly that version.
    return revision if match == "Exact" or (limit and not match) else None


def next_page(
    records: Sequence[Record], token: Token | None, limit: int, revision: int
) -> tuple[Sequence[Record], str, int]:
    """Return the page of the sorted *records* that *token* begins, the token of the next, and
    how many are left after it."""
    if token is not None:
        begin = (token.namespace, token.name)
        records = [record for record in records if record.order() >= begin]
    if not limit or len(records) <= limit:
        return records, "", 0
    following = records[limit]
    return (
        records[:limit],
        str(Token(revision, following.key.namespace, following.key.name)),
        len(records) - limit,
    )
