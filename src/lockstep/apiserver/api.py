"""The API: from a request to its answer."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace

from lockstep.api.selectors import SelectorError, parse_fields
from lockstep.api.wire import encode
from lockstep.apiserver import status
from lockstep.apiserver.audit import AuditLog
from lockstep.apiserver.auth.identity import ANONYMOUS, User
from lockstep.apiserver.auth.service_accounts import TokenSigner
from lockstep.apiserver.bodies import read_again, read_ahead, read_object
from lockstep.apiserver.budget import TooCostly, decided
from lockstep.apiserver.builtin import BUILTINS, REVIEWS
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.gate import Gate
from lockstep.apiserver.handlers import binding, delete, eviction, read, scale, token, write
from lockstep.apiserver.handlers.call import Call, warning_headers
from lockstep.apiserver.handlers.logs import Logs
from lockstep.apiserver.handlers.options import flag
from lockstep.apiserver.handlers.proxy import Proxy
from lockstep.apiserver.handlers.remote import Remote
from lockstep.apiserver.handlers.reviews import Reviews
from lockstep.apiserver.handlers.system import (
    Discovery,
    Health,
    OpenApiDocuments,
    open_api_v2,
    version,
)
from lockstep.apiserver.metrics import Metrics
from lockstep.apiserver.negotiation import accepted, in_accepted_type
from lockstep.apiserver.objects import Objects
from lockstep.apiserver.routes import Route, resource_route, verb_of
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import StoreUnavailable, Unstorable
from lockstep.apiserver.watch import Hub
from lockstep.http import Request, Response, Stream, Tunnel

logger = logging.getLogger(__name__)


_PLAIN = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
# Subresources that are a part of the object itself.
_OF_ONE = ("update", "patch")
_DURATION = re.compile(r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)")
_PARTS = ("status", "approval", "ephemeralcontainers", "finalize", "resize")

Answer = Response | Stream | Tunnel


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
        proxy: Proxy,
        address: str,
        audit: AuditLog,
    ) -> None:
        self._audit = audit
        self.store = objects.store
        self.catalog = catalog = objects.catalog
        self._signer = signer
        self._logs = logs
        self._remote = remote
        self._proxy = proxy
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
        except Unstorable as error:
            answer = failure(status.too_large(str(error)))
        except TooCostly:
            answer = failure(status.too_large("the object changes faster than it can be checked"))
        except RecursionError:
            answer = failure(status.bad_request("the object is nested too deeply"))
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            answer = failure(status.internal(f"{type(error).__name__}: {error}"))
        if isinstance(answer, Response):
            answer = await in_accepted_type(request, answer)
        seconds = time.perf_counter() - began
        self.metrics.count(request.verb, request.resource, answer.status, seconds)
        return answer

    def admit(self, request: Request) -> Response | None:
        """Return the refusal of a request whose credentials are wrong, before its body is read."""
        try:
            self.gate.identify(request)
        except StatusError as error:
            self.metrics.count(request.verb, request.resource, error.code, 0.0)
            return failure(error)
        return None

    async def _answer(self, request: Request) -> Answer:
        user = self.gate.identify(request)
        request.peer.known = request.peer.known or user is not ANONYMOUS
        route = resource_route(request.path)
        if "timeout" in request.query and not flag(request.query, "watch"):
            _require_duration(request.query["timeout"])
        if route is None:
            self.gate.require_path(user, request)
            return self._system(request)
        verb = verb_of(request.method, route, watch=flag(request.query, "watch"))
        request.verb, request.resource = verb, route.plural
        try:
            answer = await self._of_resource(request, user, route)
        except StatusError as error:
            self._audit.note(request, user, route, error.code)
            raise
        self._audit.note(request, user, route, answer.status)
        return answer

    async def _of_resource(self, request: Request, user: User, route: Route) -> Answer:
        verb = request.verb
        self.gate.require(user, verb, route, _name_by_field(request, verb))
        await read_ahead(request)
        if self._reviews.answers(route):
            return self._reviews.answer(request, route, user)
        if (route.group, route.plural, verb) == ("", "bindings", "create"):
            # The older way to bind, which names the pod in the body.
            name = (read_object(request, "Binding").get("metadata") or {}).get("name", "")
            route = replace(route, plural="pods", name=name, subresource="binding")
        served = self.catalog.find(route.group, route.version, route.plural)
        if served is None:
            raise self._unknown(route)
        if route.subresource != "proxy":  # what a pod answers is the pod's business
            request.wanted = accepted(request, served, stream=verb == "watch").type
        call = Call(request, route, verb, served, user, self.gate.rbac)
        answer = await decided(lambda: self._dispatch(call), lambda: read_again(request))
        if served.deprecation and not isinstance(answer, Tunnel):
            answer.headers += warning_headers([served.deprecation])
        return answer

    def _unknown(self, route: Route) -> StatusError:
        """Return the answer for what is not served: in groups that are built in, a Status."""
        groups = {kind.group for kind in (*BUILTINS, *REVIEWS)}
        return status.no_such_path() if route.group in groups else status.page_not_found()

    def _system(self, request: Request) -> Answer:
        if found := self._discovery.answer(request):
            if request.method not in ("GET", "HEAD") and request.path.strip("/") != "apis":
                raise status.method_not_allowed()
            return found
        if request.method not in ("GET", "HEAD") and request.path.strip("/") == "version":
            raise status.method_not_allowed()
        match request.path.strip("/").split("/"):
            case ["version"]:
                return version()
            case ["metrics"]:
                return Response(body=self.metrics.expose(), content_type=PROMETHEUS)
            case ["openapi", "v2"]:
                return open_api_v2(request)
            case ["openapi", "v3", *_] if document := self._open_api.answer(request):
                return document
            case ["openapi", "v3", *_]:
                return Response(404, content_type="")
            case ["healthz" | "livez" | "readyz", *_]:
                return self.health.answer(request)
        raise status.page_not_found()

    async def _dispatch(self, call: Call) -> Answer:
        _check_scope(call.served, call.route, call.verb)
        if call.route.subresource:
            return await self._subresource(call)
        match call.verb:
            case "get" | "update" | "patch":
                return await self._whole(call)
            case "list":
                return read.list_(self.store, call)
            case "watch":
                return read.watch(self.store, self.hub, call)
            case "create":
                return await write.create(self.objects, call)
            case "delete":
                return await delete.delete(self.objects, call)
            case "deletecollection":
                return await delete.delete_collection(self.objects, call)
        raise status.method_not_allowed()

    async def _whole(self, call: Call) -> Answer:
        """Read or change an object, or the part of it that a subresource stands for."""
        if call.verb == "get":
            return read.get(self.store, call)
        change = write.update if call.verb == "update" else write.patch
        return await change(self.objects, call)

    async def _subresource(self, call: Call) -> Answer:
        name = call.route.subresource
        if name not in call.served.kind.subresources:
            if call.served.custom:
                kind = call.served.kind
                raise status.not_found(kind.group, kind.plural, call.route.name)
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
            case "proxy", _:
                return await self._proxy.answer(call)
            case "attach" | "exec" | "portforward", "get" | "create":
                return await self._remote.answer(call)
            case _, "get" | "update" | "patch" if name in _PARTS:
                return await self._whole(call)
        raise status.method_not_allowed()


def _require_duration(text: str) -> None:
    """Require that the time in which a client wants its answer is one, as Go writes it."""
    if text and not _DURATION.fullmatch(text):
        raise status.bad_request("invalid timeout specified in the request URL")


def _name_by_field(request: Request, verb: str) -> str:
    """Return the one name that a list or watch is about: a rule may allow just that."""
    if verb not in ("list", "watch", "deletecollection") or "fieldSelector" not in request.query:
        return ""
    try:
        return parse_fields(request.query["fieldSelector"]).exact("metadata.name") or ""
    except SelectorError:
        return ""


def _check_scope(served: Served, route: Route, verb: str) -> None:
    kind = served.kind
    if kind.namespaced and not route.namespace:
        if route.name:
            raise status.no_such_path()
        if verb not in ("list", "watch"):
            raise status.method_not_allowed()
    if route.namespace and not kind.namespaced:
        raise status.no_such_path()
    named = bool(route.name)
    if (verb in _OF_ONE and not named) or (
        not route.subresource and (verb not in kind.verbs or (verb == "create" and named))
    ):
        raise status.method_not_allowed()


def failure(error: StatusError) -> Response:
    """Return the answer that tells *error*."""
    headers = []
    if error.retry_after is not None:
        headers.append(("Retry-After", str(error.retry_after)))
    if error.is_page:
        headers.append(("X-Content-Type-Options", "nosniff"))
        return Response(error.code, f"{error.message}\n".encode(), _PLAIN, headers)
    return Response(error.code, encode(error.to_object()), headers=headers)
