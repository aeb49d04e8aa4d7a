"""What a browser can follow: each topic tells what changed since it was asked last."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from lockstep.api.core import EVENTS, PODS
from lockstep.api.gang import GANGS
from lockstep.api.training import TRAINING_JOBS
from lockstep.console.sessions import Session
from lockstep.console.views import job, jobs, picture, query
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


class JobList(Topic):
    """``jobs?PARAMETERS``: one page of the list of jobs."""

    kinds = frozenset({"TrainingJob", "Gang"})

    def __init__(self, world: World, session: Session, given: Mapping[str, str]) -> None:
        super().__init__(world, session)
        self._query = query.parse(given, tuple(jobs.COLUMNS), jobs.PHASES)

    async def picture(self) -> Picture:
        """Return the page."""
        rights = self.session.rights
        sees = await rights.lister(TRAINING_JOBS, self.world.job_namespaces)
        return jobs.listed(self.world.job_rows, self._query, sees)


class JobPage(Topic):
    """``job/NAMESPACE/NAME``: a job with its gang, pods and events."""

    kinds = frozenset({"TrainingJob", "Gang", "Pod", "Event"})

    def __init__(self, world: World, session: Session, namespace: str, name: str) -> None:
        super().__init__(world, session)
        self._namespace, self._name = namespace, name

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change belongs to the job; events of its pods are named as they are."""
        ours = name == self._name or (kind == "Event" and name.startswith(f"{self._name}-"))
        return namespace == self._namespace and ours

    async def picture(self) -> Picture:
        """Return the page; what the user may not list is left out and named in ``hidden``."""
        world, space, name = self.world, self._namespace, self._name
        may = {res.kind: await self._may(res) for res in (TRAINING_JOBS, GANGS, PODS, EVENTS)}
        if not may["TrainingJob"]:
            return Picture({"forbidden": "list trainingjobs.lockstep.dev", "namespace": space})
        pods = world.pods_of(space, name) if may["Pod"] else []
        about = [name, *(pod.metadata.name for pod in pods)]
        found = job.page(
            world.jobs.get(space, name),
            world.gangs.get(space, name) if may["Gang"] else None,
            pods,
            world.events_about(space, about) if may["Event"] else [],
        )
        hidden = sorted(kind for kind, allowed in may.items() if not allowed)
        return Picture({**found.facts, "hidden": hidden}, found.order, found.rows)

    async def _may(self, res: Any) -> bool:
        rights = self.session.rights
        return await rights.may_list(res, "") or await rights.may_list(res, self._namespace)


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
    from lockstep.console.logs import Log

    if len(name) > LONGEST:
        raise query.BadQuery(f"topic: {len(name)} characters; use at most {LONGEST}")
    try:
        parts = urlsplit(name)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise query.BadQuery("topic: it is no path with a query") from None
    match parts.path.split("/"):
        case ["jobs"]:
            return JobList(world, session, given)
        case ["job", namespace, job_name]:
            query.require_names(namespace=namespace, name=job_name)
            return JobPage(world, session, namespace, job_name)
        case ["log", namespace, pod, container]:
            query.require_names(namespace=namespace, pod=pod, container=container)
            return Log(world, session, namespace, pod, container)
        case ["server"]:
            return Server(world, session)
    raise query.BadQuery(f"topic: there is no {parts.path[:80]!r}")
