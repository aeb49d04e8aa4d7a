"""The list of jobs, which may be long: sorted, counted and searched without a walk over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from lockstep.console.views import jobs
from lockstep.console.views.jobs import JobRow
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import Query
from lockstep.console.views.sorted_rows import SortedRows

Group = tuple[str, str, str, str]
"""Namespace, queue, phase and creator of a job: what lists are filtered by, beside words."""
OVER = ("Succeeded", "Failed")
FEW = 5_000
"""Hits up to which they are sorted; more are picked out of the order that is kept."""


class JobList:
    """Rows of jobs with running counts, so that most pages need only be read to their end."""

    def __init__(self) -> None:
        self.rows: SortedRows[JobRow] = SortedRows(jobs.COLUMNS)
        self._counts: Counter[Group] = Counter()

    def __len__(self) -> int:
        return len(self.rows.rows)

    def put(self, key: str, row: JobRow) -> None:
        """Add or replace a row."""
        self._count(key, -1)
        self.rows.put(key, row)
        self._count(key, 1)

    def remove(self, key: str) -> None:
        """Remove a row, if it is there."""
        self._count(key, -1)
        self.rows.remove(key)

    def namespaces(self) -> set[str]:
        """Return the namespaces that have jobs."""
        return {group[0] for group in self._counts}

    def phases(self, query: Query, may_see: Callable[[str], bool]) -> Counter[str]:
        """Return how many jobs match by phase, words and the query's own phases left out."""
        found: Counter[str] = Counter()
        allowed = {space: may_see(space) for space in self.namespaces()}
        for (space, queue, phase, user), number in self._counts.items():
            if allowed[space] and _fits(query, space, queue, user):
                found[phase] += number
        return found

    def queues(self, query: Query, may_see: Callable[[str], bool]) -> set[str]:
        """Return the queues of jobs that match and are not over."""
        return {
            queue
            for space, queue, phase, user in self._counts
            if phase not in OVER and may_see(space) and _fits(query, space, queue, user)
        }

    def page(self, query: Query, may_see: Callable[[str], bool]) -> Picture:
        """Return one page of the jobs that match, of the namespaces that may be seen.

        ``facts`` count what matches: ``total``, and by phase but for the query's own phases.
        """
        if query.search:
            return self._searched(query, may_see)
        phases = self.phases(query, may_see)
        total = sum(n for phase, n in phases.items() if not query.phases or phase in query.phases)
        end = min(total, query.offset + query.limit)
        found = islice(self.matching(query, may_see), query.offset, max(query.offset, end))
        page = {key: msgspec.structs.asdict(one) for key, one in found}
        return Picture({"total": total, "phases": dict(sorted(phases.items()))}, list(page), page)

    def _searched(self, query: Query, may_see: Callable[[str], bool]) -> Picture:
        phases: Counter[str] = Counter()
        page: dict[str, Any] = {}
        total, end = 0, query.offset + query.limit
        for key, one in self._walk(query, may_see):
            phases[one.phase] += 1
            if query.phases and one.phase not in query.phases:
                continue
            if query.offset <= total < end:
                page[key] = msgspec.structs.asdict(one)
            total += 1
        return Picture({"total": total, "phases": dict(sorted(phases.items()))}, list(page), page)

    def matching(
        self, query: Query, may_see: Callable[[str], bool]
    ) -> Iterator[tuple[str, JobRow]]:
        """Yield the jobs that match, in order."""
        for key, one in self._walk(query, may_see):
            if not query.phases or one.phase in query.phases:
                yield key, one

    def _walk(self, query: Query, may_see: Callable[[str], bool]) -> Iterator[tuple[str, JobRow]]:
        allowed: dict[str, bool] = {}
        by_column = self.rows.by(query.sort, descending=query.descending)
        for key, one in self._found(query) if query.search else by_column:
            space = one.namespace
            may = allowed.get(space)
            if may is None:
                may = allowed[space] = may_see(space)
            if may and _fits(query, space, one.queue, one.user):
                yield key, one

    def _found(self, query: Query) -> Iterable[tuple[str, JobRow]]:
        """Return the jobs whose namespace and name hold the words, in order."""
        words, rows = query.search, self.rows.rows
        hits = {key for key in rows if words in key}
        if len(hits) > FEW:
            every = self.rows.by(query.sort, descending=query.descending)
            return (pair for pair in every if pair[0] in hits)
        value = jobs.COLUMNS[query.sort]
        entries = sorted(((value(rows[k]), k) for k in hits), reverse=query.descending)
        return ((key, rows[key]) for _, key in entries)

    def _count(self, key: str, by: int) -> None:
        one = self.rows.rows.get(key)
        if one is not None:
            group = (one.namespace, one.queue, one.phase, one.user)
            self._counts[group] += by
            if not self._counts[group]:
                del self._counts[group]


def _fits(query: Query, namespace: str, queue: str, user: str) -> bool:
    if query.namespace and namespace != query.namespace:
        return False
    if query.queue and queue != query.queue:
        return False
    return not query.user or user == query.user
