"""Lists of objects, a page each, and whether what is shown is current."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.api.training import TRAINING_JOBS
from lockstep.console.cluster_cache import PARTS, ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic, forbidden, unread
from lockstep.console.views import jobs, listing, query
from lockstep.console.views.kinds import KINDS
from lockstep.console.views.picture import Picture


class JobList(Topic):
    """``jobs?PARAMETERS``: one page of the list of jobs."""

    kinds = frozenset({"TrainingJob", "Gang"})

    def __init__(self, world: ClusterCache, session: Session, given: Mapping[str, str]) -> None:
        super().__init__(world, session)
        self.query = query.parse(given, tuple(jobs.COLUMNS), jobs.PHASES)

    async def picture(self) -> Picture:
        """Return the page."""
        sees = await self.session.rights.lister(TRAINING_JOBS, self.world.job_list.namespaces)
        return self.world.job_list.page(self.query, sees)


class List(Topic):
    """``list/WORD?PARAMETERS``: one page of the list of any other kind."""

    def __init__(
        self, world: ClusterCache, session: Session, word: str, given: Mapping[str, str]
    ) -> None:
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
        if not self.kind.resource.namespaced:
            spaces = {"", *(row.name for row in found.rows.rows.values())}
        sees = await self.session.rights.lister(self.kind.resource, lambda: spaces)
        if not any(map(sees, spaces)):
            return forbidden(self.kind.resource)
        return listing.shown(self.kind, found.rows, self.query, sees)


class Server(Topic):
    """``server``: whether what is shown is current, and all parts of Lockstep run."""

    kinds = frozenset({PARTS})

    async def picture(self) -> Picture:
        """Return why what is shown may be old, and which parts do not run."""
        return Picture({"problem": self.world.problem(), "silent": self.world.silent})
