"""What a browser can follow: each topic tells what changed since it was asked last."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.console.sessions import Session
from lockstep.console.views import jobs, listing, picture, query
from lockstep.console.views.kinds import KINDS
from lockstep.console.views.picture import EMPTY, Picture
from lockstep.console.world import World

Json = dict[str, Any]
LONGEST: Final = 2_000


class Topic(abc.ABC):
    """One view of one user."""

    kinds: frozenset[str] = frozenset()
    """Whose changes it shows."""

    def __init__(self, world: World, session: Session) -> None:
        self.world, self.session = world, session
        self._shown: Picture = EMPTY
        self._told = False

    @abc.abstractmethod
    async def picture(self) -> Picture:
        """Return what there is to see now, of what the user may see."""

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change of an object may show."""
        return kind in self.kinds

    def forget(self) -> None:
        """Note that it is not known what the browser has."""
        self._shown, self._told = EMPTY, False

    async def message(self) -> Json | None:
        """Return what changed since the last message; None where nothing did.

        Raises:
            Unauthorized: when the user's credentials count no more.
            ApiError: when the user's rights cannot be asked for.
        """
        now = await self.picture()
        changed = picture.delta(self._shown, now)
        if not self._told:
            changed["reset"] = True
        elif not changed:
            return None
        self._shown, self._told = now, True
        return changed

    def end(self) -> None:  # noqa: B027 - most topics run nothing
        """End what runs for it."""

    async def sees(self, res: Resource[Any]) -> Callable[[str], bool]:
        """Return what tells of which namespaces the user may list a kind."""
        return await self.session.rights.lister(res, self.world.namespaces)


def forbidden(res: Resource[Any], namespace: str = "") -> Picture:
    """Return what is shown in place of what the user may not list: the right that is missing."""
    group = f".{res.group}" if res.group else ""
    return Picture({"forbidden": f"list {res.plural}{group}", "namespace": namespace})


def unread(world: World) -> Picture:
    """Return what is shown while the API server does not answer."""
    return Picture({"unread": world.problem() or "the API server is being read"})


class JobList(Topic):
    """``jobs?PARAMETERS``: one page of the list of jobs."""

    kinds = frozenset({"TrainingJob", "Gang"})

    def __init__(self, world: World, session: Session, given: Mapping[str, str]) -> None:
        super().__init__(world, session)
        self.query = query.parse(given, tuple(jobs.COLUMNS), jobs.PHASES)

    async def picture(self) -> Picture:
        """Return the page."""
        sees = await self.session.rights.lister(TRAINING_JOBS, self.world.job_list.namespaces)
        return self.world.job_list.page(self.query, sees)


class List(Topic):
    """``list/WORD?PARAMETERS``: one page of the list of any other kind."""

    def __init__(self, world: World, session: Session, word: str, given: Mapping[str, str]) -> None:
        super().__init__(world, session)
        if word not in KINDS:
            raise query.BadQuery(f"kind: {word[:40]!r} is none; use one of {', '.join(KINDS)}")
        self.kind = KINDS[word]
        self.kinds = frozenset({self.kind.resource.kind})
        columns = ("name", "namespace", *(column.name for column in self.kind.columns))
        self.query = query.parse(given, columns, None, "name")

    async def picture(self) -> Picture:
        """Return the page; for a user who may list the kind nowhere, the right that is missing."""
        found = await self.world.collection(self.kind.word)
        if found is None:
            return unread(self.world)
        spaces = found.namespaces() | self.world.namespaces() | {self.session.namespace}
        sees = await self.session.rights.lister(self.kind.resource, lambda: spaces)
        if not any(map(sees, spaces)):
            return forbidden(self.kind.resource)
        return listing.shown(self.kind, found.rows, self.query, sees)


class Server(Topic):
    """``server``: whether what is shown is current."""

    async def picture(self) -> Picture:
        """Return why what is shown may be old."""
        return Picture({"problem": self.world.problem()})


def topic(world: World, session: Session, name: str) -> Topic:
    """Return the topic of a name as the browser writes it.

    Raises:
        BadQuery: when there is no such topic.
    """
    from lockstep.console import cluster_topics, job_topics
    from lockstep.console.logs import Logs

    if len(name) > LONGEST:
        raise query.BadQuery(f"topic: {len(name)} characters; use at most {LONGEST}")
    try:
        parts = urlsplit(name)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise query.BadQuery("topic: it is no path with a query") from None
    of_cluster: dict[str, Callable[[World, Session], Topic]] = {
        "home": cluster_topics.Home,
        "map": cluster_topics.Map,
        "queues": cluster_topics.Queues,
        "waste": cluster_topics.Waste,
        "server": Server,
    }
    match parts.path.split("/"):
        case [word] if word in of_cluster:
            return of_cluster[word](world, session)
        case ["jobs"]:
            return JobList(world, session, given)
        case ["nodes"]:
            return cluster_topics.Nodes(world, session, given)
        case ["list", word]:
            return List(world, session, word, given)
        case ["node", node]:
            query.require_names(node=node)
            return cluster_topics.NodePage(world, session, node)
        case ["job" | "ranks" as word, namespace, job_name]:
            query.require_names(namespace=namespace, name=job_name)
            made = job_topics.JobPage if word == "job" else job_topics.Ranks
            return made(world, session, namespace, job_name)
        case ["logs", namespace, job_name]:
            return Logs(world, session, namespace, job_name, given)
        case ["object", word, namespace, object_name]:
            query.require_names(name=object_name)
            return job_topics.ObjectPage(world, session, word, namespace, object_name)
    raise query.BadQuery(f"topic: there is no {parts.path[:80]!r}")
