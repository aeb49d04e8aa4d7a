"""Delete one object, or a collection."""

from __future__ import annotations

import asyncio

import msgspec

from lockstep.apiserver import status
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.handlers.call import Call, Json
from lockstep.apiserver.http import Request, Response
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.representation import ListMeta, Whole
from lockstep.apiserver.selection import selection
from lockstep.apiserver.store import Record

_encode = msgspec.json.Encoder().encode
_CONCURRENT = 500


async def delete(objects: Objects, call: Call) -> Response:
    """Delete the object.

    Raises:
        StatusError: when there is none, or a precondition does not hold.
    """
    deletion, dry_run = read_options(call.request)
    served, route = call.served, call.route
    result = await objects.delete(served, route.namespace, route.name, deletion, dry_run=dry_run)
    if not result.deleted or served.storage == "pods":
        return Response(body=result.data)
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
    return Response(body=_encode(success))


async def delete_collection(objects: Objects, call: Call) -> Response:
    """Delete the objects that the selectors describe, and answer with them.

    Raises:
        StatusError: when a parameter is wrong or a deletion is refused.
    """
    deletion, dry_run = read_options(call.request)
    served, store = call.served, objects.store
    match = selection(served, call.request)
    records = store.objects(served.storage, call.route.namespace)
    found = sorted((r for r in records if match is None or match(r)), key=Record.order)
    for start in range(0, len(found), _CONCURRENT):
        await asyncio.gather(
            *(
                _delete_if_there(objects, call, record, deletion, dry_run=dry_run)
                for record in found[start : start + _CONCURRENT]
            )
        )
    meta = ListMeta(resource_version=str(store.revision))
    return Response(body=Whole(served).many(found, meta))


async def _delete_if_there(
    objects: Objects, call: Call, record: Record, deletion: Deletion, *, dry_run: bool
) -> None:
    _, namespace, name = record.key
    try:
        await objects.delete(call.served, namespace, name, deletion, dry_run=dry_run)
    except status.StatusError as error:
        if error.code != 404:
            raise


def read_options(request: Request) -> tuple[Deletion, bool]:
    """Return the ``DeleteOptions`` of the body and the query, and whether it is a dry run.

    Raises:
        StatusError: when they cannot be read.
    """
    body = read_object(request) if request.body else {}
    deletion = options_of(body, request.query)
    return deletion, bool(body.get("dryRun") or request.query.get("dryRun"))


def options_of(body: Json, query: dict[str, str]) -> Deletion:
    """Return what ``DeleteOptions`` ask for; the query counts where the body is silent.

    Raises:
        StatusError: when an option has a value that it cannot have.
    """
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if not propagation:
        orphan = body.get("orphanDependents")
        propagation = "" if orphan is None else "Orphan" if orphan else "Background"
    if propagation not in ("", "Background", "Foreground", "Orphan"):
        raise status.bad_request(f'propagationPolicy: Unsupported value: "{propagation}"')
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise status.bad_request(f"gracePeriodSeconds: Invalid value: {grace}") from None
    conditions = body.get("preconditions") or {}
    return Deletion(
        seconds, propagation, conditions.get("uid") or "", conditions.get("resourceVersion") or ""
    )
