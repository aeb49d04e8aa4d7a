"""Jupyter's REST interface over Kernel objects, as Enterprise Gateway has it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from aiohttp import web

from lockstep import __version__
from lockstep.api.notebooks import KERNELS, Environment, Kernel
from lockstep.api.wire import Json
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import keys
from lockstep.notebooks.gateway.access import Access, Asker, Code, Refused
from lockstep.notebooks.gateway.session import CONNECT_SECONDS, Session
from lockstep.notebooks.inside.messages import MOST, PING_SECONDS
from lockstep.notebooks.master import Master

AGAIN: Final = 3.0
"""Seconds after which it is asked again whether a client may have its kernel."""
STALE: Final = 9.0
"""Seconds for which the last yes counts while the API server does not answer."""
PLAIN: Final = "python3"
"""Name of the kernelspec of kernels without an environment."""
_ID: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
_GIVEN: Final = re.compile(r"KERNEL_[A-Z0-9_]{1,100}")
_STATES: Final = {"": "starting", "Waiting": "starting", "Starting": "starting"}


@dataclass
class KernelApi:
    """Serves ``/api/kernels`` and ``/api/kernelspecs``."""

    client: Client
    access: Access
    master: Master
    kernels: Informer[Kernel]
    environments: Informer[Environment]
    http: aiohttp.ClientSession
    sessions: dict[tuple[str, str], set[Session]] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        one = "/api/kernels/{kernel}"
        return [
            web.get("/api", self._version),
            web.get("/api/kernelspecs", self._specs),
            web.get("/api/kernelspecs/{name}", self._spec),
            web.get("/api/kernels", self._list),
            web.post("/api/kernels", self._start),
            web.get(one, self._get),
            web.delete(one, self._delete),
            web.post(one + "/interrupt", self._interrupt),
            web.post(one + "/restart", self._restart),
            web.get(one + "/channels", self._channels),
            # Jupyter's own blocking client sends no header with its WebSocket: its ws_url has a
            # code, which works once.
            web.post("/api/codes", self._code),
            web.get("/code/{code}" + one + "/channels", self._channels),
        ]

    def changed(self, kernel: Kernel | None) -> None:
        """Tell the clients of *kernel* that it changed."""
        self._news.set()
        self._news = asyncio.Event()
        if kernel is None:
            return
        for session in self.sessions.get((kernel.metadata.namespace, kernel.metadata.name), ()):
            session.changed.set()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "2.14.0", "lockstep_version": __version__})

    async def _asker(self, request: web.Request, given: Json | None = None) -> Asker:
        wanted = (given or {}).get("KERNEL_NAMESPACE") or request.query.get("namespace")
        namespace = str(wanted or "default")
        try:
            if code := request.match_info.get("code"):
                if "code" not in request:
                    request["code"] = self.access.redeem(code, request.match_info["kernel"])
                found: Code = request["code"]
                headers = {"Authorization": f"Bearer {found.token}"}
                return await self.access.asker(headers, found.namespace)
            asker = await self.access.asker(request.headers, namespace)
        except Refused as error:
            raise _problem(error.status, str(error)) from None
        if wanted and asker.namespace != wanted:
            raise _problem(403, f"KERNEL_NAMESPACE: {wanted} is not {asker.namespace}")
        return asker

    async def _code(self, request: web.Request) -> web.Response:
        """Answer with a code for the channels of one kernel, which may be there or not yet."""
        body = await _body(request)
        kernel = str(body.get("kernel") or "")
        if not _ID.fullmatch(kernel):
            raise _problem(400, f"kernel: {kernel[:80]!r} is no name; start it with KERNEL_ID")
        asker = await self._asker(request, body)
        try:
            code = self.access.code(request.headers, asker.namespace, kernel)
        except Refused as error:
            raise _problem(error.status, str(error)) from None
        return web.json_response({"code": code}, status=201)

    async def _specs(self, request: web.Request) -> web.Response:
        asker = await self._asker(request)
        found = {name: _spec_of(name, text) for name, text in self._named(asker)}
        return web.json_response({"default": PLAIN, "kernelspecs": found})

    async def _spec(self, request: web.Request) -> web.Response:
        asker = await self._asker(request)
        name = request.match_info["name"]
        known = dict(self._named(asker))
        if name not in known:
            raise _problem(404, f"there is no kernelspec {name!r}; there are {', '.join(known)}")
        return web.json_response(_spec_of(name, known[name]))

    def _named(self, asker: Asker) -> list[tuple[str, str]]:
        here = [
            (one.metadata.name, _shown(one))
            for one in self.environments
            if one.metadata.namespace == asker.namespace
        ]
        return [(PLAIN, "Python 3"), *sorted(here)]

    async def _list(self, request: web.Request) -> web.Response:
        asker = await self._asker(request)
        return web.json_response([self._model(one) for one in self.kernels if asker.has(one)])

    async def _start(self, request: web.Request) -> web.Response:
        body = await _body(request)
        given = {k: str(v) for k, v in (body.get("env") or {}).items() if _GIVEN.fullmatch(k)}
        asker = await self._asker(request, given)
        name = body.get("name") or PLAIN
        if name not in dict(self._named(asker)):
            there = ", ".join(one for one, _ in self._named(asker))
            raise _problem(404, f"name: there is no kernelspec {name!r}; there are {there}")
        number = given.get("KERNEL_ID") or str(uuid.uuid4())
        if not _ID.fullmatch(number):
            raise _problem(400, f"KERNEL_ID: {number!r} is no name; leave it out")
        spec = {
            "environment": "" if name == PLAIN else name,
            "notebook": asker.notebook,
            "owner": asker.owner,
            "variables": given,
        }
        try:
            made = await self.client.create(
                KERNELS, {"metadata": {"name": number}, "spec": spec}, asker.namespace
            )
        except AlreadyExists:
            raise _problem(409, f"KERNEL_ID: there is a kernel {number} already") from None
        await self._until_known(made)
        return web.json_response(
            self._model(made), status=201, headers={"Location": f"/api/kernels/{number}"}
        )

    async def _until_known(self, made: Kernel) -> None:
        """Wait until the copy has the kernel, for its client asks for it at once."""
        about = made.metadata
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                while self.kernels.get(about.namespace, about.name) is None:
                    await self._news.wait()

    async def _mine(self, request: web.Request) -> Kernel:
        asker = await self._asker(request)
        name = request.match_info["kernel"]
        kernel = self.kernels.get(asker.namespace, name)
        if kernel is None or not asker.has(kernel):
            raise _problem(404, f"there is no kernel {name}")
        return kernel

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._model(await self._mine(request)))

    async def _delete(self, request: web.Request) -> web.Response:
        about = (await self._mine(request)).metadata
        with contextlib.suppress(NotFound):
            await self.client.delete(KERNELS, about.name, about.namespace, uid=about.uid)
        return web.Response(status=204)

    async def _interrupt(self, request: web.Request) -> web.Response:
        kernel = await self._mine(request)
        waiting = False
        for session in list(self._of(kernel)):
            waiting = await session.interrupt() or waiting
        if kernel.status.address and not waiting:
            await self._order(kernel, "interrupt")
        return web.Response(status=204)

    async def _restart(self, request: web.Request) -> web.Response:
        kernel = await self._mine(request)
        about = kernel.metadata
        last = kernel.status.parked.generation if kernel.status.parked else 0
        spec = {"since": last + 1, "wake": uuid.uuid4().hex}
        await self.client.patch(KERNELS, about.name, {"spec": spec}, about.namespace)
        if kernel.status.address:
            await self._order(kernel, "restart")
        return web.json_response(self._model(kernel))

    async def _order(self, kernel: Kernel, what: str) -> None:
        url = f"http://{kernel.status.address}/{what}"
        try:
            async with (
                asyncio.timeout(60),
                self.http.post(url, headers=await self._proof(kernel)) as answer,
            ):
                answer.raise_for_status()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _problem(503, f"the kernel does not answer: {error}") from error

    async def _channels(self, request: web.Request) -> web.StreamResponse:
        kernel = await self._mine(request)
        key = (kernel.metadata.namespace, kernel.metadata.name)
        client = web.WebSocketResponse(heartbeat=PING_SECONDS, max_msg_size=MOST)
        await client.prepare(request)
        session = Session(client, lambda: self.kernels.get(*key), self._wake, self._connect)
        self.sessions.setdefault(key, set()).add(session)
        try:
            await self._hold(request, session)
        finally:
            self.sessions[key].discard(session)
            if not self.sessions[key]:
                del self.sessions[key]
        with contextlib.suppress(ConnectionError):
            await client.close()
        return client

    async def _hold(self, request: web.Request, session: Session) -> None:
        """Carry messages while the asker may: it is asked again, for no token is for good."""
        running = asyncio.ensure_future(session.run())
        clock = asyncio.get_running_loop().time
        allowed = clock()
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=AGAIN)
                try:
                    async with asyncio.timeout(AGAIN):
                        await self._asker(request)
                    allowed = clock()
                except web.HTTPException:
                    return
                except (ApiError, OSError, TimeoutError):
                    if clock() - allowed > STALE:
                        return
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _of(self, kernel: Kernel) -> set[Session]:
        return self.sessions.get((kernel.metadata.namespace, kernel.metadata.name), set())

    async def _wake(self, kernel: Kernel, value: str) -> None:
        about = kernel.metadata
        with contextlib.suppress(NotFound):
            try:
                await self.client.patch(
                    KERNELS, about.name, {"spec": {"wake": value}}, about.namespace
                )
            except ApiError:
                # The session looks again soon, and asks once more.
                return

    async def _connect(self, kernel: Kernel) -> aiohttp.ClientWebSocketResponse:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await self.http.ws_connect(
                f"http://{kernel.status.address}/channels",
                headers=await self._proof(kernel),
                heartbeat=PING_SECONDS,
                max_msg_size=MOST,
            )

    async def _proof(self, kernel: Kernel) -> dict[str, str]:
        token = keys.kernel_token(await self.master.key(), kernel.metadata.uid)
        return {"Authorization": f"Bearer {token}"}

    def _model(self, kernel: Kernel) -> Json:
        status, about = kernel.status, kernel.metadata
        return {
            "id": about.name,
            "name": kernel.spec.environment or PLAIN,
            "last_activity": _with_fraction(status.last_activity or about.creation_timestamp or ""),
            "execution_state": _STATES.get(status.phase, status.execution_state or "idle"),
            "connections": len(self._of(kernel)),
        }


async def _body(request: web.Request) -> Json:
    try:
        body = await request.json() if request.can_read_body else {}
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise _problem(400, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise _problem(400, "the body is no JSON object")
    return body


def _with_fraction(moment: str) -> str:
    """Return *moment* as Jupyter's own clients read it, which insist on a fraction."""
    return moment.replace("Z", ".000000Z") if "." not in moment else moment


def _shown(environment: Environment) -> str:
    cards = environment.spec.resources
    amount = ", ".join(f"{count} {name}" for name, count in sorted(cards.items()))
    name = environment.metadata.name
    return f"Python 3 ({name}: {amount})" if amount else f"Python 3 ({name})"


def _spec_of(name: str, shown: str) -> Json:
    spec = {
        "argv": [],
        "display_name": shown,
        "language": "python",
        "interrupt_mode": "signal",
        "env": {},
        "metadata": {},
    }
    return {"name": name, "spec": spec, "resources": {}}


def _problem(status: int, message: str) -> web.HTTPException:
    """Return an answer in the words of Jupyter's API."""
    kinds: dict[int, type[web.HTTPException]] = {
        400: web.HTTPBadRequest,
        401: web.HTTPUnauthorized,
        403: web.HTTPForbidden,
        404: web.HTTPNotFound,
        409: web.HTTPConflict,
        429: web.HTTPTooManyRequests,
        503: web.HTTPServiceUnavailable,
    }
    text = json.dumps({"message": message, "reason": message})
    return kinds[status](text=text, content_type="application/json")
