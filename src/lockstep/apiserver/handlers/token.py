"""Tokens for service accounts (TokenRequest)."""

from __future__ import annotations

from dataclasses import replace

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.auth.service_accounts import (
    DEFAULT_LIFETIME,
    ISSUER,
    MIN_LIFETIME,
    Bearer,
    TokenSigner,
)
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.patch import Writer, builtin, track
from lockstep.apiserver.schema.causes import invalid
from lockstep.apiserver.store import Key
from lockstep.http import Response

_MAX_LIFETIME = 1 << 32


def issue(objects: Objects, signer: TokenSigner, call: Call) -> Response:
    """Answer a TokenRequest with a token.

    Raises:
        StatusError: when there is no such account or pod, or the lifetime is too short.
    """
    request = read_object(call.request, "TokenRequest")
    spec = request.get("spec") or {}
    route = call.route
    record = objects.find(call.served, route.namespace, route.name)
    lifetime = _lifetime(spec)
    bearer = Bearer(route.namespace, route.name, record.meta.uid)
    if reference := spec.get("boundObjectRef"):
        bearer = _bound(objects, bearer, reference)
    now = objects.clock()
    audiences = spec.get("audiences") or [ISSUER]
    token = signer.issue(bearer, now=now, lifetime=lifetime, audiences=audiences)
    options = call.options()
    component = "io.k8s.api.authentication.v1.TokenRequest"
    answer: Json = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": route.name, "namespace": route.namespace},
        "spec": {**spec, "expirationSeconds": lifetime},
    }
    by = Writer(options.manager, answer["apiVersion"], now, route.subresource)
    track(None, answer, builtin(component), by)
    answer["metadata"] |= {"uid": record.meta.uid, "creationTimestamp": timestamp(now)}
    answer["spec"] = {"boundObjectRef": None, **answer["spec"], "audiences": audiences}
    answer["status"] = {"token": token, "expirationTimestamp": timestamp(now + lifetime)}
    return Response(201, encode(answer))


def _lifetime(spec: Json) -> int:
    lifetime = spec.get("expirationSeconds")
    if lifetime is None:
        return DEFAULT_LIFETIME
    if isinstance(lifetime, int) and MIN_LIFETIME <= lifetime <= _MAX_LIFETIME:
        return lifetime
    is_long = isinstance(lifetime, int) and lifetime > _MAX_LIFETIME
    limit = "larger than 2^32 seconds" if is_long else "less than 10 minutes"
    detail = f"may not specify a duration {limit}"
    wrong = invalid("spec.expirationSeconds", lifetime, detail)
    raise status.invalid("authentication.k8s.io", "TokenRequest", "", [wrong])


def _bound(objects: Objects, bearer: Bearer, reference: Json) -> Bearer:
    """Bind a token to a pod: it ends with the pod, and only the pod's own account gets it."""
    kind, name = reference.get("kind", ""), reference.get("name", "")
    if (reference.get("apiVersion", "v1"), kind) != ("v1", "Pod"):
        version = reference.get("apiVersion", "")
        shown = version if "/" in version else f"/{version}"
        raise status.bad_request(f"cannot bind token to object of type {shown}, Kind={kind}")
    pod = objects.store.get(Key("pods", bearer.namespace, name))
    if pod is None:
        raise status.not_found("", "pods", name)
    account = (pod.object().get("spec") or {}).get("serviceAccountName")
    if account != bearer.name:
        raise status.bad_request(
            f'cannot bind token for serviceaccount "{bearer.name}" to pod running with different '
            "serviceaccount name."
        )
    uid = reference.get("uid")
    if uid and uid != pod.meta.uid:
        raise status.conflict(
            "",
            "Pod",
            name,
            f"the UID in the bound object reference ({uid}) does not match the UID in record. The "
            "object might have been deleted and then recreated",
        )
    return replace(bearer, pod_name=name, pod_uid=pod.meta.uid)
