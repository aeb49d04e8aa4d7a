"""What is asked before something is done: the form in three languages, and what would become."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec
from aiohttp import web

from lockstep.api.wire import Json
from lockstep.console import answers
from lockstep.console.answers import answer, problem
from lockstep.console.objects import parsed, shown
from lockstep.console.sessions import Session
from lockstep.console.views import form, sdk
from lockstep.console.views.form import BadField
from lockstep.kube.client import Client

NO_SIMULATOR: Final = "this console has no simulator"
WhatIf = Callable[[Client, str, list[Json]], Awaitable[list[Json]]]
"""Takes the user's connection, a namespace and objects; returns an answer for each job.

It raises ``ValueError`` with words where the question makes no sense."""


PlanEffect = Callable[[Client, dict[str, Json]], Awaitable[Json]]
"""Takes the user's connection and merge patches of queues' specs by name; returns the jobs that
would start, wait or be evicted otherwise (``starts``, ``waits``, ``evicted``)."""


class Simulator(NamedTuple):
    """What is asked of the simulator, which lies above the console."""

    what_if: WhatIf
    plan: PlanEffect


class Plan(msgspec.Struct, forbid_unknown_fields=True):
    """Changes of queues' specs, by name, as merge patches."""

    queues: dict[str, Json]


class Written(msgspec.Struct, forbid_unknown_fields=True):
    """A job in one of three languages."""

    form: Json | None = None
    yaml: str | None = None
    sdk: str | None = None


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """An object of which it is asked what would become of it."""

    object: Json


class Planning:
    """The endpoints of the Submit page."""

    def __init__(self, user: Callable[[web.Request], Session], simulator: Simulator | None) -> None:
        self._user, self._simulator = user, simulator

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.post("/api/render", self._render),
            web.post("/api/what-if", self._ask),
            web.post("/api/plan", self._plan),
        ]

    async def _render(self, request: web.Request) -> web.Response:
        """Return a job in all three languages, and what the form has no field for."""
        self._user(request)
        given: Written = await answers.body(request, Written)
        said = [one for one in (given.form, given.yaml, given.sdk) if one is not None]
        if len(said) != 1:
            raise answers.Unreadable("body: give one of form, yaml and sdk")
        beyond: list[str] = []
        if given.yaml is not None:
            tree = parsed(given.yaml)
            fields, beyond = form.form_of(tree)
        else:
            fields = given.form if given.form is not None else sdk.form_of(given.sdk or "")
            tree = form.training_job(fields)
        return answer(
            {
                "form": fields,
                "object": tree,
                "yaml": given.yaml if given.yaml is not None else shown(tree),
                "sdk": given.sdk if given.sdk is not None else sdk.script(fields),
                "beyond": beyond,
            }
        )

    async def _ask(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Question = await answers.body(request, Question)
        if self._simulator is None:
            return problem(404, NO_SIMULATOR)
        meta = given.object.get("metadata")
        space = meta.get("namespace") if isinstance(meta, dict) else None
        where = space if isinstance(space, str) and space else session.namespace
        if not isinstance(given.object.get("kind"), str):
            raise BadField("kind", "the object has no kind")
        try:
            found = await self._simulator.what_if(session.client, where, [given.object])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise answers.Unreadable(f"object: {str(error)[:500]}") from None
        return answer({"answers": found})

    async def _plan(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Plan = await answers.body(request, Plan)
        if self._simulator is None:
            return problem(404, NO_SIMULATOR)
        try:
            return answer(await self._simulator.plan(session.client, given.queues))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise answers.Unreadable(f"queues: {str(error)[:500]}") from None
