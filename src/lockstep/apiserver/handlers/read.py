"""Get, list and watch."""

from __future__ import annotations

from lockstep.apiserver import status
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.paging import Token, at_revision, next_page
from lockstep.apiserver.http import Response, Stream
from lockstep.apiserver.representation import ListMeta
from lockstep.apiserver.selection import selection
from lockstep.apiserver.store import Key, Record, Store
from lockstep.apiserver.watch import Hub, WatchRequest, watch_stream


def get(store: Store, call: Call) -> Response:
    """Answer with one object.

    Raises:
        StatusError: when there is none.
    """
    served, route = call.served, call.route
    record = store.get(Key(served.storage, route.namespace, route.name))
    if record is None:
        raise status.not_found(served.kind.group, served.kind.plural, route.name)
    return Response(body=call.representation().one(record))


def list_(store: Store, call: Call) -> Response:
    """Answer with a list, or a page of one.

    Raises:
        StatusError: when a parameter is wrong, or the revision asked for is gone.
    """
    query = call.request.query
    limit = _number(query.get("limit"), "limit") or 0
    token = Token.parse(query["continue"]) if query.get("continue") else None
    match = selection(call.served, call.request)
    found, revision = at_revision(store, call, token, limit)
    records = [r for r in found if match is None or match(r)]
    records.sort(key=Record.order)
    page, following, left = next_page(records, token, limit, revision)
    meta = ListMeta(
        resource_version=str(revision),
        continue_=following,
        # A count of what selectors let through would be a promise about pages not yet read.
        remaining_item_count=left if following and match is None else None,
    )
    return Response(body=call.representation().many(page, meta))


def watch(store: Store, hub: Hub, call: Call) -> Stream:
    """Answer with the changes of a collection as they happen.

    Raises:
        StatusError: when a parameter is wrong.
    """
    query, request = call.request.query, call.request
    initial = request.flag("sendInitialEvents")
    _check_match(query, initial=initial)
    revision = _number(query.get("resourceVersion"), "resourceVersion") or None
    timeout = _number(query.get("timeoutSeconds"), "timeoutSeconds")
    bookmarks = request.flag("allowWatchBookmarks")
    asked = WatchRequest(
        resource=call.served.storage,
        namespace=call.route.namespace,
        match=selection(call.served, request),
        representation=call.representation(),
        revision=revision,
        initial_events=initial or (revision is None and "sendInitialEvents" not in query),
        initial_bookmark=initial and bookmarks,
        bookmarks=bookmarks,
        timeout=float(timeout) if timeout else None,
    )
    if initial and revision and revision > store.revision:
        raise status.too_large_version(revision, store.revision)
    if revision is None and not asked.initial_events:
        asked = asked.starting_at(store.revision)
    return watch_stream(store, hub, asked)


def _check_match(query: dict[str, str], *, initial: bool) -> None:
    match = query.get("resourceVersionMatch")
    if initial and match != "NotOlderThan":
        raise status.bad_request(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if match and "sendInitialEvents" not in query:
        raise status.bad_request(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )


def _number(text: str | None, name: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise status.bad_request(f'{name}: Invalid value: "{text}": must be a number')
    return int(text)
