"""Create, replace and patch."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.bodies import (
    media_type,
    not_registered,
    read_object,
    require_unique_keys,
    summary,
)
from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.builtin.traits import CREATED_BY_UPDATE, REPLACED_BY_VERSION
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.creator import sign
from lockstep.apiserver.doubled import doubled_fields
from lockstep.apiserver.go_json import type_name
from lockstep.apiserver.handlers.borders import require_border
from lockstep.apiserver.handlers.call import APPLY, Call, written
from lockstep.apiserver.handlers.patching import (
    application,
    mutation,
    read_configuration,
    unfit,
)
from lockstep.apiserver.objects import Mutate, Objects, Result, WriteOptions
from lockstep.apiserver.preparation import Unreadable
from lockstep.apiserver.schema.causes import invalid
from lockstep.apiserver.store import Key
from lockstep.http import Response


async def create(objects: Objects, call: Call) -> Response:
    """Create the object in the body.

    Raises:
        StatusError: when it may not be created.
    """
    options = call.options()
    obj = read_object(call.request, call.served.kind.kind)
    doubled = _doubled(call, obj, options)
    _require_kind(call, obj)
    check_identity(call.served, call.route.namespace, obj)
    call.require_grant(obj)
    return await _create(objects, call, obj, options, doubled)


def _doubled(call: Call, obj: Json, options: WriteOptions) -> list[str]:
    """Return what to warn about fields that the body has twice.

    Raises:
        StatusError: when the request asks for strictness.
    """
    if options.validation == "Ignore" or media_type(call.request) not in ("", "application/json"):
        return []
    found = [f'duplicate field "{path}"' for path in doubled_fields(call.request.body, obj)]
    if found and options.validation == "Strict":
        kind = call.served.kind
        unknown = [f'unknown field "{path}"' for path in call.served.schema.prune(obj)]
        text = ", ".join([*unknown, *found])
        raise Unreadable(kind.kind, kind.version, f"strict decoding error: {text}")
    return found


def _require_kind(call: Call, obj: Json) -> None:
    """Require that the body of a custom resource says what it is: nothing else does."""
    if call.served.custom and not obj.get("kind"):
        kind, body = call.served.kind.kind, call.request.body
        raise status.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): Object 'Kind' is "
            f"missing in '{body.decode(errors='replace')}' ({summary(body)})"
        )


async def _create(
    objects: Objects, call: Call, obj: Json, options: WriteOptions, warnings: list[str]
) -> Response:
    if obj["metadata"].get("resourceVersion") not in (None, "", "0"):
        raise status.failed("resourceVersion should not be set on objects to be created")
    repeated = [*warnings, *deduplicate_owners(obj)]
    sign(call.served, call.user, obj)
    require_border(objects, call, obj, None)
    result = await objects.create(call.served, call.route.namespace, obj, options)
    return written(call, result.warned(repeated), 201)


async def update(objects: Objects, call: Call) -> Response:
    """Replace an object, or the part of it that a subresource stands for.

    Raises:
        StatusError: when there is none, or it may not become what the body says.
    """
    options = call.options()
    obj = read_object(call.request, call.served.kind.kind)
    doubled = _doubled(call, obj, options)
    _require_kind(call, obj)
    served, route = call.served, call.route
    check_identity(served, route.namespace, obj)
    meta = obj["metadata"]
    check_name(meta.get("name"), route.name)
    key = Key(served.storage, route.namespace, route.name)
    if objects.store.newest(key) is None and _creates(call):
        call.require_creation()
        call.require_grant(obj)
        meta.pop("resourceVersion", None)
        return await _create(objects, call, obj, options, doubled)
    if not meta.get("resourceVersion") and (served.custom or served.storage in REPLACED_BY_VERSION):
        objects.find(served, route.namespace, route.name)
        named = served.kind.plural if served.custom else served.kind.kind
        raise status.version_required(served.kind.group, named, route.name)
    repeated = [*doubled, *deduplicate_owners(obj)]
    return written(call, (await _change(objects, call, lambda _: obj)).warned(repeated))


def _creates(call: Call) -> bool:
    return call.served.storage in CREATED_BY_UPDATE and not call.route.subresource


async def patch(objects: Objects, call: Call) -> Response:
    """Patch an object, or the part of it that a subresource stands for.

    Raises:
        StatusError: when there is none, or the patch does not fit it.
    """
    if media_type(call.request) == APPLY:
        return await _apply(objects, call)
    mutate = mutation(call)
    try:
        return written(call, await _change(objects, call, mutate))
    except Unreadable as error:
        served, route = call.served, call.route
        live = served.tree(objects.find(served, route.namespace, route.name))
        raise unfit(call, error.why, mutate(live)) from None


async def _change(objects: Objects, call: Call, mutate: Mutate, *, applied: bool = False) -> Result:
    route = call.route

    def permitted(live: Json) -> Json:
        old = {**live}
        new = mutate(live)
        _check_patched(call, new)
        call.require_grant(new, old)
        require_border(objects, call, new, old)
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


def _check_patched(call: Call, new: Json) -> None:
    """Require that a patch leaves an object what and where it is."""
    kind, meta = call.served.kind, new.get("metadata")
    version, named = new.get("apiVersion"), new.get("kind")
    if (version, named) != (kind.api_version, kind.kind):
        raise Unreadable(kind.kind, kind.version, _mismatch(call.served, str(version), str(named)))
    if isinstance(meta, dict):
        check_name(meta.get("name"), call.route.name)
        if kind.namespaced and meta.get("namespace") not in (None, "", call.route.namespace):
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )


async def _apply(objects: Objects, call: Call) -> Response:
    served, route = call.served, call.route
    options = call.options()
    applied = read_configuration(call)
    if options.validation == "Strict":
        require_unique_keys(call.request)
    key = Key(served.storage, route.namespace, route.name)
    if objects.store.newest(key) is None and not route.subresource:
        call.require_creation()
        if uid := applied["metadata"].get("uid"):
            kind, why = served.kind, "and no existing object was found"
            raise status.conflict(
                kind.group,
                kind.plural,
                route.name,
                f"uid mismatch: the provided object specified uid {uid}, {why}",
            )
        applied["metadata"].pop("resourceVersion", None)
        fresh = application(call, applied, objects.clock())(None)
        call.require_grant(fresh)
        sign(served, call.user, fresh)
        require_border(objects, call, fresh, None)
        return written(
            call, await objects.create(served, route.namespace, fresh, options, applied=True), 201
        )
    mutate = application(call, applied, objects.clock())
    return written(call, await _change(objects, call, mutate, applied=True))


def check_identity(served: Served, namespace: str, obj: Json) -> None:
    """Require that a body is of the kind and in the namespace that the path names.

    Raises:
        StatusError: when it is not.
    """
    kind = served.kind
    version = obj.get("apiVersion") or kind.api_version
    named = obj.get("kind") or kind.kind
    obj["apiVersion"], obj["kind"] = version, named
    if served.custom and named != kind.kind and version == kind.api_version:
        wrong = invalid("kind", named, f"must be {kind.kind}")
        name = (obj.get("metadata") or {}).get("name", "")
        raise status.invalid(kind.group, named, name, [wrong])
    if (version, named) != (kind.api_version, kind.kind):
        raise status.bad_request(_wrong_identity(served, version, named))
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    if not isinstance(meta, dict):
        raise status.bad_request(
            f'{named} in version "{kind.version}" cannot be handled as a {kind.kind}: json: cannot '
            f"unmarshal {type_name(meta)} into Go struct field {named}.metadata of type "
            "v1.ObjectMeta"
        )
    inside = meta.get("namespace")
    if kind.namespaced and inside and inside != namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _wrong_identity(served: Served, version: str, named: str) -> str:
    kind = served.kind
    if served.custom and named == kind.kind:
        return (
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    head = f'{named} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}'
    return f"{head}: {_mismatch(served, version, named)}"


def _mismatch(served: Served, version: str, named: str) -> str:
    """Return why an object of another kind or version cannot be converted to the one here."""
    kind = served.kind
    short = version.rpartition("/")[2]
    if not any((known.api_version, known.kind) == (version, named) for known in BUILTINS):
        return not_registered(version, named)
    package = (kind.group or "core").partition(".")[0]
    source, target = f"{short}.{named}", f"{package}.{kind.kind}"
    return f"converting ({source}) to ({target}): unknown conversion"


def check_name(given: Any, name: str) -> None:
    """Require that a body is about the object that the path names.

    Raises:
        StatusError: when it is not.
    """
    if not given:
        raise status.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if given != name:
        raise status.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def deduplicate_owners(obj: Json) -> list[str]:
    """Drop the owner references of *obj* that are there twice; return what to warn about."""
    owners = obj["metadata"].get("ownerReferences")
    if not isinstance(owners, list) or len(owners) < 2:
        return []
    kept: list[Any] = []
    repeated: list[str] = []
    for owner in owners:
        if owner in kept:
            repeated.append(str(owner.get("uid", "")) if isinstance(owner, dict) else "")
        else:
            kept.append(owner)
    if not repeated:
        return []
    obj["metadata"]["ownerReferences"] = kept
    return [
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(repeated)}"
    ]
