"""Pages of a list: continue tokens pinned to the revision of the first page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lockstep.apiserver import status
from lockstep.apiserver.go_json import syntax_error
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.options import unreadable_revision
from lockstep.apiserver.selection import Match
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
        except binascii.Error:
            raise _no_token("illegal base64 data at input byte 0") from None
        except msgspec.ValidationError:
            raise _no_token("server does not recognize this encoded version ") from None
        except (ValueError, msgspec.MsgspecError):
            raise _no_token(syntax_error(data)) from None
        return cls(wire.rv, wire.namespace, wire.name)


def _no_token(why: str) -> status.StatusError:
    return status.bad_request(f"invalid continue token: continue key is not valid: {why}")


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
    if text and not (text.isascii() and text.isdigit()):
        raise status.bad_request(f"invalid resource version: {unreadable_revision(text)}")
    if token is not None:
        if text not in ("", "0"):
            raise status.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return token.revision if token.revision > 0 else None
    if text in ("", "0"):
        return None
    revision = int(text)
    if revision > store.revision:
        raise status.too_large_version(revision, store.revision)
    # With a limit and no match, clients of old expect exactly that version.
    return revision if match == "Exact" or (limit and not match) else None


def next_page(
    records: Sequence[Record],
    token: Token | None,
    limit: int,
    revision: int,
    match: Match | None = None,
) -> tuple[Sequence[Record], str, int]:
    """Return a page of the sorted *records* that pass *match*, and where the next one begins.

    Like Kubernetes, a page that is full says that there is more as soon as there are any records
    left, whether they pass or not. The last value is how many are left.
    """
    if token is not None:
        begin = (token.namespace, token.name)
        records = [record for record in records if record.order() >= begin]
    if not limit:
        return [r for r in records if match is None or match(r)], "", 0
    page: list[Record] = []
    for position, record in enumerate(records):
        if len(page) == limit:
            rest = Token(revision, record.key.namespace, record.key.name)
            return page, str(rest), len(records) - position
        if match is None or match(record):
            page.append(record)
    return page, "", 0
