"""The console's web server: its endpoints and its pages."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from lockstep.api import names
from lockstep.api.training import TRAINING_JOBS
from lockstep.console import answers, guard
from lockstep.console.allocation import Allocation
from lockstep.console.answers import answer, problem
from lockstep.console.apps import Apps
from lockstep.console.audit import Trail
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.list_topics import JobList, List
from lockstep.console.objects import Objects
from lockstep.console.planning import Planning, Simulator
from lockstep.console.reading import Reading
from lockstep.console.records import Records
from lockstep.console.sessions import Session, Sessions
from lockstep.console.signing_in import SigningIn
from lockstep.console.streams import Stream
from lockstep.console.views import form
from lockstep.kube.errors import Unauthorized

PAGE: Final = Path(__file__).parent / "page"
LARGEST: Final = 1 << 20
"""Bytes of a request's body."""


class Following(msgspec.Struct, forbid_unknown_fields=True):
    """Which topics a stream follows."""

    stream: str
    topics: list[str]


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """A form or a whole object, to create or only to check."""

    form: dict[str, Any] | None = None
    object: dict[str, Any] | None = None
    check: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """What the endpoints stand on."""

    world: ClusterCache
    sessions: Sessions
    signing_in: SigningIn
    apps: Apps
    trail: Trail
    records: Records
    simulator: Simulator | None


class Console:
    """The endpoints."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._world, self._sessions = parts, parts.world, parts.sessions
        self._signing_in = parts.signing_in

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(middlewares=[self._middleware], client_max_size=LARGEST)
        app.on_response_prepare.append(guard.add_headers)
        user = self._user
        app.add_routes(
            [
                web.get("/healthz", _alive),
                *self._signing_in.routes(user),
                web.get("/api/stream", self._stream),
                web.post("/api/topics", self._follow),
                web.get("/api/jobs", self._jobs),
                web.get("/api/lists/{word}", self._list),
                web.post("/api/jobs", self._submit),
                *Objects(self._world, user).routes(),
                *Planning(user, self._parts.simulator).routes(),
                *Reading(self._world, user, self._parts.records, self._parts.trail).routes(),
                *Allocation(
                    self._world, self._sessions, self._signing_in, self._parts.records
                ).routes(),
                *self._parts.apps.routes(user),
                web.static("/static", PAGE),
                web.get("/{path:(?!api/|static/).*}", _shell),
            ]
        )
        return app

    @web.middleware
    async def _middleware(self, request: web.Request, handler: guard.Handler) -> web.StreamResponse:
        if self._parts.apps.meant(request):
            return await self._parts.apps.carry(request)
        refused = ""
        if request.path != "/healthz":
            refused = guard.check(request, self._signing_in.origins)
        if refused:
            return problem(403, refused)
        response = await self._answer(request, handler)
        session = self._session(request)
        if session is not None and guard.changes(request):
            where = (request.remote or "", request.method, request.path)
            self._parts.trail.note(session.user, *where, response.status)
        return response

    async def _answer(self, request: web.Request, handler: guard.Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Unauthorized:
            if session := self._session(request):
                self._sessions.end(session)
            return problem(401, "the API server does not accept your credentials any more")
        except Exception as error:
            return answers.of(error)

    def _session(self, request: web.Request) -> Session | None:
        return self._signing_in.session(request)

    def _user(self, request: web.Request) -> Session:
        session = self._session(request)
        if session is None:
            raise web.HTTPUnauthorized(reason="sign in first")
        return session

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        session = self._user(request)
        if not await self._world.ready():
            return problem(503, f"the API server is being read: {self._world.problem()}")
        last = request.headers.get("Last-Event-ID", "")
        known = session.streams.get(last.partition(":")[0])
        stream = known or Stream(self._world, session)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await stream.run(response.write, last)
        return response

    async def _follow(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Following = await answers.body(request, Following)
        stream = session.streams.get(given.stream)
        if stream is None:
            return problem(404, "stream: it is gone; open a new one")
        stream.follow(given.topics)
        return answer({})

    async def _jobs(self, request: web.Request) -> web.Response:
        return await self._listed(JobList(self._world, self._user(request), request.query))

    async def _list(self, request: web.Request) -> web.Response:
        word = request.match_info["word"]
        return await self._listed(List(self._world, self._user(request), word, request.query))

    async def _listed(self, wanted: JobList | List) -> web.Response:
        if not await self._world.ready():
            return problem(503, f"the API server is being read: {self._world.problem()}")
        found = await wanted.picture()
        if right := found.facts.get("forbidden"):
            return problem(403, f"you may not {right}")
        rows = [found.rows[key] for key in found.order]
        return answer({**found.facts, "items": rows})

    async def _submit(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Submission = await answers.body(request, Submission)
        if (given.form is None) == (given.object is None):
            raise answers.Unreadable("body: give either form or object")
        tree = given.object or {}
        if given.form is not None:
            tree = form.training_job(given.form)
        _require_job(tree)
        made = await session.client.create(TRAINING_JOBS, tree, dry_run=given.check)
        meta = made.metadata
        shown = {"namespace": meta.namespace, "name": meta.name, "object": tree}
        return answer(shown, 200 if given.check else 201)


def _require_job(tree: Any) -> None:
    expected = (names.API_VERSION, "TrainingJob")
    if (tree.get("apiVersion"), tree.get("kind")) != expected:
        raise answers.Unreadable(f"kind: only {expected[1]} of {expected[0]} can be submitted here")
    if not isinstance(tree.get("metadata", {}), dict):
        raise answers.Unreadable("metadata: it is no object")


async def _alive(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _shell(request: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGE / "index.html")
