"""Tokens for service accounts (TokenRequest)."""

from __future__ import annotations

import msgspec

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
from lockstep.apiserver.http import Response
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.schema.causes import invalid
from lockstep.apiserver.store import Key

_encode = msgspec.json.Encoder().encode


def issue(objects: Objects, signer: TokenSigner, call: Call) -> Response:
    """Answer a TokenRequest with a token.

    Raises:
        StatusError: when there is no such account or pod, or the lifetime is too short.
    """
    request = read_object(call.request)
    spec = request.get("spec") or {}
    route = call.route
    record = objects.find(call.served, route.namespace, route.name)
    lifetime = spec.get("expirationSeconds") or DEFAULT_LIFETIME
    if lifetime < MIN_LIFETIME:
        wrong = invalid(
            "spec.expirationSeconds", lifetime, "may not specify a duration less than 10 minutes"
        )
        raise status.invalid("authentication.k8s.io", "TokenRequest", route.name, [wrong])
    bound = spec.get("boundObjectRef") or {}
    bearer = Bearer(route.namespace, route.name, record.meta.uid)
    if bound.get("kind") == "Pod":
        pod = objects.store.get(Key("pods", route.namespace, bound.get("name", "")))
        if pod is None:
            raise status.not_found("", "pods", bound.get("name", ""))
        bearer = Bearer(*_account(bearer), pod.key.name, pod.meta.uid)
    now = objects.clock()
    audiences = spec.get("audiences") or [ISSUER]
    token = signer.issue(bearer, now=now, lifetime=lifetime, audiences=audiences)
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": route.name, "namespace": route.namespace},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": lifetime},
        "status": {"token": token, "expirationTimestamp": timestamp(now + lifetime)},
    }
    return Response(201, _encode(answer))


def _account(bearer: Bearer) -> tuple[str, str, str]:
    return bearer.namespace, bearer.name, bearer.uid
