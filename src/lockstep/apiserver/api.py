"""The API: from a request to its answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from lockstep.api.selectors import SelectorError, parse_fields
from lockstep.apiserver import status
from lockstep.apiserver.auth.service_accounts import TokenSigner
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.builtin.reviews import REVIEWS
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.gate import Gate
from lockstep.apiserver.handlers import binding, delete, eviction, read, scale, token, write
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.logs import Logs
from lockstep.apiserver.handlers.remote import Remote
from lockstep.apiserver.handlers.reviews import Reviews
from lockstep.apiserver.handlers.system import (
    Discovery,
    Health,
    OpenApiDocuments,
    open_api_v2,
    version,
)
from lockstep.apiserver.http import Request, Response, Stream, Tunnel
from lockstep.apiserver.metrics import Metrics
from lockstep.apiserver.negotiation import as_yaml, wants_yaml
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.routes import Route, resource_route, verb_of
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import StoreUnavailable
from lockstep.apiserver.watch import Hub

logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
# Subresources that are a part of the object itself.
_PARTS = ("status", "approval", "ephemeralcontainers", "finalize", "resize")

Answer = Response | Stream | Tunnel
Handle = Callable[[Call], Awaitable[Answer]]


class Api:
    """Answers requests: who asks, what is asked for, whether it is allowed, and the doing."""

    def __init__(
        self,
        objects: Objects,
        hub: Hub,
        gate: Gate,
        signer: TokenSigner,
        *,
        logs: Logs,
        remote: Remote,
        address: str,
    ) -> None:
        self.store = objects.store
        self.catalog = catalog = objects.catalog
        self._signer = signer
        self._logs = logs
        self._remote = remote
        self.hub = hub
        self.objects = objects
        self.gate = gate
        self.health = Health()
        self.metrics = Metrics(objects.store, hub)
        self._reviews = Reviews(gate, objects.clock)
        self._discovery = Discovery(catalog, REVIEWS, address)
        self._open_api = OpenApiDocuments(catalog, REVIEWS)

    async def __call__(self, request: Request) -> Answer:
        """Answer *request*; failures become Status objects."""
        began = time.perf_counter()
        try:
            answer = await self._answer(request)
        except StatusError as error:
            answer = failure(error)
        except StoreUnavailable as error:
            answer = failure(status.internal(str(error)))
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            answer = failure(status.internal(f"{type(error).__name__}: {error}"))
        if wants_yaml(request) and isinstance(answer, Response):
            answer = as_yaml(answer)
        seconds = time.perf_counter() - began
        self.metrics.count(request.verb, request.resource, answer.status, seconds)
        return answer

    async def _answer(self, request: Request) -> Answer:
        user = self.gate.identify(request)
        route = resource_route(request.path)
        if route is None:
            self.gate.require_path(user, request)
            return self._system(request)
        verb = verb_of(request.method, route, watch=request.flag("watch"))
        request.verb, request.resource = verb, route.plural
        self.gate.require(user, verb, route, _name_by_field(request, verb))
        if self._reviews.answers(route):
            return self._reviews.answer(request, route, user)
        if (route.group, route.plural, verb) == ("", "bindings", "create"):
            # The older way to bind, which names the pod in the body.
            name = (read_object(request).get("metadata") or {}).get("name", "")
            route = replace(route, plural="pods", name=name, subresource="binding")
        served = self.catalog.find(route.group, route.version, route.plural)
        if served is None:
            raise status.no_such_path()
        return await self._dispatch(Call(request, route, verb, served, user, self.gate.rbac))

    def _system(self, request: Request) -> Answer:
        if request.method not in ("GET", "HEAD"):
            raise status.no_such_path()
        if found := self._discovery.answer(request):
            return found
        match request.path.strip("/").split("/"):
            case ["version"]:
                return version()
            case ["metrics"]:
                return Response(body=self.metrics.expose(), content_type=PROMETHEUS)
            case ["openapi", "v2"]:
                return open_api_v2(request)
            case ["openapi", "v3", *_] if document := self._open_api.answer(request):
                return document
            case ["healthz" | "livez" | "readyz", *_]:
                return self.health.answer(request)
        raise status.no_such_path()

    async def _dispatch(self, call: Call) -> Answer:
        _check_scope(call.served, call.route, call.verb)
        if call.route.subresource:
            return await self._subresource(call)
        match call.verb:
            case "get":
                return read.get(self.store, call)
            case "list":
                return read.list_(self.store, call)
            case "watch":
                return read.watch(self.store, self.hub, call)
            case "create":
                return await write.create(self.objects, call)
            case "update":
                return await write.update(self.objects, call)
            case "patch":
                return await write.patch(self.objects, call)
            case "delete":
                return await delete.delete(self.objects, call)
            case "deletecollection":
                return await delete.delete_collection(self.objects, call)
        raise status.method_not_allowed("the server does not allow this method on the resource")

    async def _subresource(self, call: Call) -> Answer:
        name = call.route.subresource
        if name not in call.served.kind.subresources:
            raise status.no_such_path()
        match name, call.verb:
            case "scale", "get":
                return scale.get(self.objects, call)
            case "scale", "update" | "patch":
                return await scale.change(self.objects, call)
            case "binding", "create":
                return await binding.bind(self.objects, call)
            case "eviction", "create":
                return await eviction.evict(self.objects, call)
            case "token", "create":
                return token.issue(self.objects, self._signer, call)
            case "log", "get":
                return await self._logs.answer(call)
            case "attach" | "exec" | "portforward", "get" | "create":
                return await self._remote.answer(call)
            case _, "get" if name in _PARTS:
                return read.get(self.store, call)
            case _, "update" if name in _PARTS:
                return await write.update(self.objects, call)
            case _, "patch" if name in _PARTS:
                return await write.patch(self.objects, call)
        raise status.method_not_allowed("the server does not allow this method on the resource")


def _name_by_field(request: Request, verb: str) -> str:
    """Return the one name that a list or watch is about: a rule may allow just that."""
    if verb not in ("list", "watch", "deletecollection") or "fieldSelector" not in request.query:
        return ""
    try:
        return parse_fields(request.query["fieldSelector"]).exact("metadata.name") or ""
    except SelectorError:
        return ""


def _check_scope(served: Served, route: Route, verb: str) -> None:
    if served.kind.namespaced:
        if not route.namespace and (route.name or verb not in ("list", "watch")):
            raise status.bad_request("an empty namespace may not be set during creation")
    elif route.namespace:
        raise status.no_such_path()


def failure(error: StatusError) -> Response:
    """Return the answer that tells *error*."""
    headers = []
    if error.retry_after is not None:
        headers.append(("Retry-After", str(error.retry_after)))
    return Response(error.code, _encode(error.to_object()), headers=headers)
