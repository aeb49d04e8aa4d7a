"""Delete one object, or a collection."""

from __future__ import annotations

import asyncio

import msgspec

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.bodies import read_delete_options
from lockstep.apiserver.builtin.traits import RETURNED_WHEN_DELETED
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.handlers.borders import require_border
from lockstep.apiserver.handlers.call import Call, warning_headers
from lockstep.apiserver.handlers.options import deletion_causes, flag, number
from lockstep.apiserver.handlers.paging import next_page
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.representation import ListMeta, Whole
from lockstep.apiserver.selection import selection
from lockstep.apiserver.store import Key, Record
from lockstep.http import Request, Response

_CONCURRENT = 500


async def delete(objects: Objects, call: Call) -> Response:
    """Delete the object.

    Raises:
        StatusError: when there is none, or a precondition does not hold.
    """
    deletion, dry_run = read_options(call.request)
    served, route = call.served, call.route
    found = objects.store.newest(Key(served.storage, route.namespace, route.name))
    if found is not None:
        require_border(objects, call, None, found.object())
    result = await objects.delete(served, route.namespace, route.name, deletion, dry_run=dry_run)
    headers = warning_headers(_orphaned(call, deletion))
    if not result.deleted or served.storage in RETURNED_WHEN_DELETED:
        return Response(body=call.shown(result.data), headers=headers)
    uid = msgspec.json.decode(result.data)["metadata"]["uid"]
    details = {
        "name": route.name,
        "group": served.kind.group,
        "kind": served.kind.plural,
        "uid": uid,
    }
    success: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }
    return Response(body=encode(success), headers=headers)


def _orphaned(call: Call, deletion: Deletion) -> list[str]:
    if call.served.storage != "jobs.batch" or deletion.propagation:
        return []
    return [
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning"
    ]


async def delete_collection(objects: Objects, call: Call) -> Response:
    """Delete the objects that the selectors describe, and answer with them.

    Raises:
        StatusError: when a parameter is wrong or a deletion is refused.
    """
    deletion, dry_run = read_options(call.request)
    served, store = call.served, objects.store
    match = selection(served, call.request)
    limit = max(number(call.request.query, "limit") or 0, 0)
    records = sorted(store.objects(served.storage, call.route.namespace), key=Record.order)
    found, following, _ = next_page(records, None, 0, store.revision, match)
    if limit:
        _, following, _ = next_page(records, None, limit, store.revision, match)
    for start in range(0, len(found), _CONCURRENT):
        await asyncio.gather(
            *(
                _delete_if_there(objects, call, record, deletion, dry_run=dry_run)
                for record in found[start : start + _CONCURRENT]
            )
        )
    meta = ListMeta(resource_version=str(store.revision), continue_=following or None)
    return Response(body=Whole(served).many(found, meta))


async def _delete_if_there(
    objects: Objects, call: Call, record: Record, deletion: Deletion, *, dry_run: bool
) -> None:
    _, namespace, name = record.key
    require_border(objects, call, None, record.object())
    try:
        await objects.delete(call.served, namespace, name, deletion, dry_run=dry_run)
    except status.StatusError as error:
        if error.code != 404:
            raise


def read_options(request: Request) -> tuple[Deletion, bool]:
    """Return the ``DeleteOptions`` of the body or else of the query, and whether to only try.

    Raises:
        StatusError: when they cannot be read or contradict each other.
    """
    if request.body:
        body = read_delete_options(request)
        return options_of(body), bool(body.get("dryRun"))
    query = request.query
    given: Json = {name: query[name] for name in ("propagationPolicy",) if query.get(name)}
    if (grace := number(query, "gracePeriodSeconds")) is not None:
        given["gracePeriodSeconds"] = grace
    if "orphanDependents" in query:
        given["orphanDependents"] = flag(query, "orphanDependents")
    if query.get("dryRun"):
        given["dryRun"] = [query["dryRun"]]
    return options_of(given), bool(query.get("dryRun"))


def options_of(body: Json) -> Deletion:
    """Return what ``DeleteOptions`` ask for.

    Raises:
        StatusError: when an option has a value that it cannot have.
    """
    propagation = body.get("propagationPolicy") or ""
    if causes := deletion_causes(body, propagation):
        raise status.invalid_options("DeleteOptions", causes)
    if not propagation:
        orphan = body.get("orphanDependents")
        propagation = "" if orphan is None else "Orphan" if orphan else "Background"
    conditions = body.get("preconditions") or {}
    return Deletion(
        body.get("gracePeriodSeconds"),
        propagation,
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
    )
