"""What is read at once and not followed: whole lists as CSV, cost, rights, and who did what."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from aiohttp import web

from lockstep.api.core import NODES
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.console import audit
from lockstep.console.answers import answer, problem
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.list_topics import JobList, List
from lockstep.console.records import NoRecords, Records
from lockstep.console.rights import Ask
from lockstep.console.sessions import Session
from lockstep.console.views import listing, node_list, queue_tree
from lockstep.console.views.kinds import OBJECTS
from lockstep.console.views.query import BadQuery, parse, require_names
from lockstep.kube.named import readable

VERBS: Final = ("get", "list", "create", "update", "delete")
AT_ONCE: Final = 2_000
"""Rows of CSV after which others get their turn."""
EVERYTHING: Final = Ask("*", "*", "*")


class Reading:
    """The endpoints that only read."""

    def __init__(
        self,
        world: ClusterCache,
        user: Callable[[web.Request], Session],
        records: Records,
        trail: audit.Trail,
    ) -> None:
        self._world, self._user = world, user
        self._records, self._trail = records, trail

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get("/api/csv/{word}", self._csv),
            web.get("/api/cost", self._cost),
            web.get("/api/cost/{namespace}/{name}", self._cost_of),
            web.get("/api/rights", self._rights),
            web.get("/api/audit", self._audit),
            web.get("/api/queues", self._queues),
        ]

    async def _csv(self, request: web.Request) -> web.StreamResponse:
        """Answer with every row of a list that the user may see, as comma-separated values."""
        session, word = self._user(request), request.match_info["word"]
        rows = await self._rows(session, word, request)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/csv; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{word}.csv"',
            }
        )
        await response.prepare(request)
        text = io.StringIO()
        writer = csv.writer(text)
        for number, cells in enumerate(rows):
            writer.writerow(cells)
            if number % AT_ONCE == AT_ONCE - 1:
                await response.write(text.getvalue().encode("utf-8", "replace"))
                text.seek(0)
                text.truncate()
                await asyncio.sleep(0)
        await response.write(text.getvalue().encode("utf-8", "replace"))
        await response.write_eof()
        return response

    async def _rows(self, session: Session, word: str, request: web.Request) -> Iterable[list[str]]:
        world, given = self._world, request.query
        if not await world.cluster_ready():
            raise web.HTTPServiceUnavailable(reason="the API server is being read")
        if word == "jobs":
            wanted = JobList(world, session, given)
            sees = await session.rights.lister(TRAINING_JOBS, world.job_list.namespaces)
            return _job_cells([row for _, row in world.job_list.matching(wanted.query, sees)])
        if word in ("nodes", "queues"):
            res = NODES if word == "nodes" else QUEUES
            sees = await session.rights.lister(res, set)
            if word == "queues":
                seen = [queue for queue in world.queues if sees(queue.metadata.name)]
                shown = queue_tree.page(seen, 0)
                return _cells([shown.rows[key] for key in shown.order])
            if not sees(""):
                raise web.HTTPForbidden(reason=f"you may not list {res.plural}")
            query = parse(given, tuple(node_list.COLUMNS), None, "name")
            return _cells([node_list.row(n) for n in node_list.matching(world.node_rows(), query)])
        one = List(world, session, word, given)
        found = await world.collection(word)
        if found is None:
            raise web.HTTPServiceUnavailable(reason="the API server is being read")
        sees = await session.rights.lister(one.kind.resource, found.namespaces)
        return list(listing.csv(one.kind, found.rows, one.query, sees))

    async def _cost(self, request: web.Request) -> web.Response:
        session = self._user(request)
        by, days = request.query.get("by", "job"), request.query.get("days", "30")
        if not (days.isascii() and days.isdigit() and len(days) < 5):
            raise BadQuery(f"days: {days[:20]!r} is no number")
        return await self._bill(session, by, int(days), "")

    async def _cost_of(self, request: web.Request) -> web.Response:
        session = self._user(request)
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        require_names(namespace=namespace, name=name)
        if not await session.rights.lists(TRAINING_JOBS, namespace):
            return problem(403, f"you may not list trainingjobs.lockstep.dev in {namespace}")
        return await self._bill(session, "purpose", 92, f"{namespace}/{name}")

    async def _bill(self, session: Session, by: str, days: int, job: str) -> web.Response:
        world = self._world
        if not await world.ready():
            return problem(503, f"the API server is being read: {world.problem()}")
        try:
            return answer(await self._records.bill(session, by, days, job))
        except NoRecords as error:
            return problem(404, str(error), reason="NoRecords")

    async def _rights(self, request: web.Request) -> web.Response:
        """Return what the user may do with each kind in a namespace, as the API server says."""
        session = self._user(request)
        namespace = request.query.get("namespace", "") or session.namespace
        require_names(namespace=namespace)
        kinds = list(OBJECTS.items())
        asks = [
            Ask(verb, res.group, res.plural, namespace if res.namespaced else "")
            for _, res in kinds
            for verb in VERBS
        ]
        may = iter(await session.rights.may_all(asks))
        table = [
            {
                "word": word,
                "kind": res.kind,
                "resource": f"{res.plural}.{res.group}" if res.group else res.plural,
                "namespaced": res.namespaced,
                "verbs": {verb: next(may) for verb in VERBS},
            }
            for word, res in kinds
        ]
        return answer({"namespace": namespace, "verbs": VERBS, "items": table})

    async def _audit(self, request: web.Request) -> web.Response:
        """Return who did what, the latest first; for users who may do everything."""
        session = self._user(request)
        if not await session.rights.may(EVERYTHING):
            return problem(403, "the audit shows all users: it takes the right to * on *.*")
        words = request.query.get("q", "").strip().lower()
        limit = request.query.get("limit", "200")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:6]) <= 1000):
            raise BadQuery(f"limit: {limit[:20]!r} is no number from 1 to 1000")
        found = await asyncio.to_thread(self._trail.latest, words, int(limit))
        return answer({"items": found, "source": self._trail.source})

    async def _queues(self, request: web.Request) -> web.Response:
        listed = await readable(self._user(request).client, QUEUES)
        return answer({"items": [queue.metadata.name for queue in listed]})


def _job_cells(rows: Iterable[Any]) -> Iterator[list[str]]:
    fields: tuple[str, ...] = ()
    for row in rows:
        if not fields:
            fields = row.__struct_fields__
            yield list(fields)
        yield [listing.harmless(getattr(row, field)) for field in fields]


def _cells(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    if rows:
        yield list(rows[0])
    for row in rows:
        yield [
            listing.harmless(v if isinstance(v, str | int | float | None) else str(v))
            for v in row.values()
        ]
