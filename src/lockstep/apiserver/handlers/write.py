"""Create, replace and patch."""

from __future__ import annotations

from lockstep.apiserver import status
from lockstep.apiserver.bodies import media_type, read_object
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.handlers.call import Call, Json, written
from lockstep.apiserver.handlers.patching import APPLY, application, mutation, read_applied
from lockstep.apiserver.http import Response
from lockstep.apiserver.objects import Mutate, Objects, Result
from lockstep.apiserver.store import Key


async def create(objects: Objects, call: Call) -> Response:
    """Create the object in the body.

    Raises:
        StatusError: when it may not be created.
    """
    obj = read_object(call.request)
    check_identity(call.served, call.route.namespace, obj)
    meta = obj.setdefault("metadata", {})
    if meta.get("resourceVersion") not in (None, "", "0"):
        raise status.bad_request("resourceVersion should not be set on objects to be created")
    call.require_grant(obj)
    result = await objects.create(call.served, call.route.namespace, obj, call.options())
    return written(result, 201)


async def update(objects: Objects, call: Call) -> Response:
    """Replace an object, or the part of it that a subresource stands for.

    Raises:
        StatusError: when there is none, or it may not become what the body says.
    """
    obj = read_object(call.request)
    served, route = call.served, call.route
    check_identity(served, route.namespace, obj)
    meta = obj.setdefault("metadata", {})
    name = meta.get("name")
    if name != route.name:
        raise status.bad_request(
            f"the name of the object ({name or ''}) does not match the name on the URL "
            f"({route.name})"
        )
    if served.custom and not meta.get("resourceVersion"):
        raise status.version_required(served.kind.group, served.kind.kind, route.name)
    return written(await _change(objects, call, lambda _: obj))


async def patch(objects: Objects, call: Call) -> Response:
    """Patch an object, or the part of it that a subresource stands for.

    Raises:
        StatusError: when there is none, or the patch does not fit it.
    """
    if media_type(call.request) == APPLY:
        return await _apply(objects, call)
    return written(await _change(objects, call, mutation(call)))


async def _change(objects: Objects, call: Call, mutate: Mutate, *, applied: bool = False) -> Result:
    route = call.route

    def permitted(live: Json) -> Json:
        old = {**live}
        new = mutate(live)
        call.require_grant(new, old)
        return new

    return await objects.change(
        call.served,
        route.namespace,
        route.name,
        permitted,
        call.options(),
        subresource=route.subresource,
        applied=applied,
    )


async def _apply(objects: Objects, call: Call) -> Response:
    served, route = call.served, call.route
    applied = read_applied(call)
    key = Key(served.storage, route.namespace, route.name)
    if objects.store.newest(key) is None and not route.subresource:
        call.require_creation()
        applied["metadata"].pop("resourceVersion", None)
        fresh = application(call, applied, objects.clock())(None)
        call.require_grant(fresh)
        options = call.options()
        return written(
            await objects.create(served, route.namespace, fresh, options, applied=True), 201
        )
    mutate = application(call, applied, objects.clock())
    return written(await _change(objects, call, mutate, applied=True))


def check_identity(served: Served, namespace: str, obj: Json) -> None:
    """Require that a body is of the kind and in the namespace that the path names.

    Raises:
        StatusError: when it is not.
    """
    kind = served.kind
    given = obj.setdefault("apiVersion", kind.api_version), obj.setdefault("kind", kind.kind)
    if given != (kind.api_version, kind.kind):
        raise status.bad_request(
            f"the API version and kind in the data ({given[0]}, {given[1]}) do not match the "
            f"expected ones ({kind.api_version}, {kind.kind})"
        )
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    if not isinstance(meta, dict):
        raise status.bad_request("metadata must be an object")
    inside = meta.get("namespace")
    if kind.namespaced and inside and inside != namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
