"""Get, list and watch."""

from __future__ import annotations

from lockstep.apiserver import status
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.options import (
    flag,
    number,
    require_list_options,
    require_watch_options,
    revision,
)
from lockstep.apiserver.handlers.paging import Token, at_revision, next_page
from lockstep.apiserver.representation import ListMeta
from lockstep.apiserver.selection import Match, selection
from lockstep.apiserver.store import Key, Record, Store
from lockstep.apiserver.watch import Hub, WatchRequest, watch_stream
from lockstep.http import Response, Stream


def get(store: Store, call: Call) -> Response:
    """Answer with one object.

    Raises:
        StatusError: when there is none.
    """
    served, route = call.served, call.route
    asked = revision(call.request.query)
    if asked > store.revision:
        raise status.too_large_version(asked, store.revision)
    record = store.get(Key(served.storage, route.namespace, route.name))
    if record is None:
        raise status.not_found(served.kind.group, served.kind.plural, route.name)
    return Response(body=call.representation().one(record))


def _watched(call: Call) -> Match | None:
    match, name = selection(call.served, call.request), call.route.name
    if not name:
        return match
    return lambda record: record.key.name == name and (match is None or match(record))


def list_(store: Store, call: Call) -> Response:
    """Answer with a list, or a page of one.

    Raises:
        StatusError: when a parameter is wrong, or the revision asked for is gone.
    """
    query = call.request.query
    limit = max(number(query, "limit") or 0, 0)
    require_list_options(query)
    token = Token.parse(query["continue"]) if query.get("continue") else None
    match = selection(call.served, call.request)
    found, listed = at_revision(store, call, token, limit)
    records = sorted(found, key=Record.order)
    page, following, left = next_page(records, token, limit, listed, match)
    meta = ListMeta(
        resource_version=str(listed),
        continue_=following or None,
        # A count of what selectors let through would be a promise about pages not yet read.
        remaining_item_count=left if following and match is None else None,
    )
    return Response(body=call.representation().many(page, meta))


def watch(store: Store, hub: Hub, call: Call) -> Stream:
    """Answer with the changes of a collection as they happen.

    Raises:
        StatusError: when a parameter is wrong.
    """
    query = call.request.query
    timeout = number(query, "timeoutSeconds")
    require_watch_options(query)
    since = revision(query) or None
    initial = flag(query, "sendInitialEvents")
    bookmarks = flag(query, "allowWatchBookmarks")
    asked = WatchRequest(
        resource=call.served.storage,
        namespace=call.route.namespace,
        match=_watched(call),
        representation=call.streamed(),
        revision=since,
        initial_events=initial or (since is None and "sendInitialEvents" not in query),
        initial_bookmark=initial and bookmarks,
        bookmarks=bookmarks,
        timeout=float(timeout) if timeout else None,
    )
    if initial and since and since > store.revision:
        raise status.too_large_version(since, store.revision)
    if since is None and not asked.initial_events:
        asked = asked.starting_at(store.revision)
    return watch_stream(store, hub, asked)
