"""The console's web server: its endpoints and its pages."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from lockstep.api import names
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.console import answers, guard
from lockstep.console.answers import answer, problem
from lockstep.console.sessions import Session, Sessions
from lockstep.console.streams import Stream
from lockstep.console.topics import JobList
from lockstep.console.views import form, tables
from lockstep.console.views.query import WORDS, BadQuery, require_names
from lockstep.console.world import World
from lockstep.kube.errors import Unauthorized

PAGE: Final = Path(__file__).parent / "page"
LARGEST: Final = 1 << 20
"""Bytes of a request's body."""
COOKIE_SECONDS: Final = 12 * 3600


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """A bearer token, or the code of a one-time link."""

    token: str = ""
    code: str = ""


class Following(msgspec.Struct, forbid_unknown_fields=True):
    """Which topics a stream follows."""

    stream: str
    topics: list[str]


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """A form or a whole object, to create or only to check."""

    form: dict[str, Any] | None = None
    object: dict[str, Any] | None = None
    check: bool = False


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """What to change of a job."""

    suspend: bool


class Console:
    """The endpoints; sessions go by the cookie of that name, ``__Host-`` ones over TLS alone."""

    def __init__(
        self, world: World, sessions: Sessions, origins: frozenset[str], cookie: str
    ) -> None:
        self._world, self._sessions = world, sessions
        self._origins, self._cookie = origins, cookie
        self._secure = cookie.startswith("__Host-")

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(middlewares=[self._middleware], client_max_size=LARGEST)
        app.on_response_prepare.append(guard.add_headers)
        app.add_routes(
            [
                web.get("/healthz", _alive),
                web.get("/api/session", self._who),
                web.post("/api/session", self._sign_in),
                web.delete("/api/session", self._sign_out),
                web.get("/api/stream", self._stream),
                web.post("/api/topics", self._follow),
                web.get("/api/jobs", self._jobs),
                web.post("/api/jobs", self._submit),
                web.get("/api/jobs/{namespace}/{name}", self._job),
                web.patch("/api/jobs/{namespace}/{name}", self._change),
                web.delete("/api/jobs/{namespace}/{name}", self._delete),
                web.get("/api/queues", self._queues),
                web.get("/api/tables/{kind}", self._table),
                web.static("/static", PAGE),
                web.get("/{path:(?!api/|static/).*}", _shell),
            ]
        )
        return app

    @web.middleware
    async def _middleware(self, request: web.Request, handler: guard.Handler) -> web.StreamResponse:
        refused = "" if request.path == "/healthz" else guard.check(request, self._origins)
        if refused:
            return problem(403, refused)
        try:
            return await handler(request)
        except Unauthorized:
            if session := self._session(request):
                self._sessions.end(session)
            return problem(401, "the API server does not accept your credentials any more")
        except Exception as error:
            return answers.of(error)

    def _session(self, request: web.Request) -> Session | None:
        return self._sessions.find(request.cookies.get(self._cookie, ""))

    def _user(self, request: web.Request) -> Session:
        session = self._session(request)
        if session is None:
            raise web.HTTPUnauthorized(reason="sign in first")
        return session

    async def _who(self, request: web.Request) -> web.Response:
        return answer(_about(self._user(request)))

    async def _sign_in(self, request: web.Request) -> web.Response:
        given: SignIn = await answers.body(request, SignIn)
        sessions = self._sessions
        if given.code:
            secret, session = await sessions.with_code(given.code)
        else:
            secret, session = await sessions.with_token(given.token)
        response = answer(_about(session))
        response.set_cookie(
            self._cookie,
            secret,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Strict",
            secure=self._secure,
            path="/",
        )
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        self._sessions.end(self._user(request))
        response = answer({})
        response.del_cookie(self._cookie, path="/", secure=self._secure, httponly=True)
        return response

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
        session = self._user(request)
        wanted = JobList(self._world, session, request.query)
        if not await self._world.ready():
            return problem(503, f"the API server is being read: {self._world.problem()}")
        found = await wanted.picture()
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

    async def _job(self, request: web.Request) -> web.Response:
        path = TRAINING_JOBS.path(*_named(request))
        found = msgspec.json.decode(await self._user(request).client.get_raw(path))
        found.get("metadata", {}).pop("managedFields", None)
        return answer(found)

    async def _change(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Change = await answers.body(request, Change)
        namespace, name = _named(request)
        patch = {"spec": {"suspend": given.suspend}}
        await session.client.patch(TRAINING_JOBS, name, patch, namespace)
        return answer({})

    async def _delete(self, request: web.Request) -> web.Response:
        session = self._user(request)
        namespace, name = _named(request)
        await session.client.delete(
            TRAINING_JOBS, name, namespace, uid=request.query.get("uid") or None
        )
        return answer({})

    async def _queues(self, request: web.Request) -> web.Response:
        listed = await self._user(request).client.list(QUEUES)
        return answer({"items": [queue.metadata.name for queue in listed.items]})

    async def _table(self, request: web.Request) -> web.Response:
        """Answer a list with the user's own rights, in the server's own columns."""
        kind = tables.KINDS.get(request.match_info["kind"])
        if kind is None:
            return problem(404, f"kind: use one of {', '.join(tables.KINDS)}")
        namespace, search = request.query.get("namespace", ""), request.query.get("q", "")
        if namespace:
            require_names(namespace=namespace)
        if len(search) > WORDS:
            raise BadQuery(f"q: {len(search)} characters; use at most {WORDS}")
        path = kind.path(namespace or None if kind.namespaced else None)
        client = self._user(request).client
        found = await client.request("GET", path, accept=tables.ACCEPT)
        return answer(tables.shown(msgspec.json.decode(found), search.strip().lower()))


def _named(request: web.Request) -> tuple[str, str]:
    found = request.match_info["namespace"], request.match_info["name"]
    require_names(namespace=found[0], name=found[1])
    return found


def _require_job(tree: Any) -> None:
    expected = (names.API_VERSION, "TrainingJob")
    if (tree.get("apiVersion"), tree.get("kind")) != expected:
        raise answers.Unreadable(f"kind: only {expected[1]} of {expected[0]} can be submitted here")
    if not isinstance(tree.get("metadata", {}), dict):
        raise answers.Unreadable("metadata: it is no object")


def _about(session: Session) -> dict[str, str]:
    return {"user": session.user, "namespace": session.namespace}


async def _alive(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _shell(request: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGE / "index.html")
