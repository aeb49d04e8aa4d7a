"""Topics of the cluster: the map, its nodes, queues, waste, and the home page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lockstep.api.core import NODES, PODS
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic, forbidden, unread
from lockstep.console.views import cluster, home, node_list, queue_tree, waste
from lockstep.console.views.picture import Picture
from lockstep.console.views.query import parse


class Map(Topic):
    """``map``: every node with its GPUs, where they are, who holds them, and what they do."""

    kinds = frozenset({"Node"})

    def __init__(self, world: ClusterCache, session: Session) -> None:
        super().__init__(world, session)
        self._rows: dict[str, Json] = {}
        self._dirty: set[str] | None = None
        """Nodes that have changed; None: all of them are to be told."""
        self._seen: frozenset[str] = frozenset()

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a node has changed, and note which."""
        if kind != "Node":
            return False
        if self._dirty is not None:
            self._dirty.add(name)
        return True

    def forget(self) -> None:
        """Note that it is not known what the browser has."""
        super().forget()
        self._dirty = None

    async def picture(self) -> Picture:
        """Return the nodes, of which only those that have changed are looked at again."""
        if (instead := await self.no_nodes()) is not None:
            return instead
        sees = await self.sees(PODS)
        seen = frozenset(filter(sees, self.world.namespaces()))
        if self._dirty is None or seen != self._seen:
            self._rows = {one.name: cluster.told(one, sees) for one in self.world.node_rows()}
        else:
            self._update(sees)
        self._dirty, self._seen = set(), seen
        tiers = [tier.rpartition("/")[2] for tier in self.world.tiers()]
        facts = {"tiers": tiers, **cluster.totals(self.world.node_rows())}
        return Picture(facts, sorted(self._rows), self._rows)

    def _update(self, sees: Callable[[str], bool]) -> None:
        rows = dict(self._rows)
        for name in self._dirty or ():
            one = self.world.node(name)
            if one is None:
                rows.pop(name, None)
            else:
                rows[name] = cluster.told(one, sees)
        self._rows = rows


class Nodes(Topic):
    """``nodes?PARAMETERS``: one page of the list of nodes."""

    kinds = frozenset({"Node"})

    def __init__(self, world: ClusterCache, session: Session, given: Mapping[str, str]) -> None:
        super().__init__(world, session)
        self._query = parse(given, tuple(node_list.COLUMNS), None, "name")

    async def picture(self) -> Picture:
        """Return the page."""
        if (instead := await self.no_nodes()) is not None:
            return instead
        return node_list.page(self.world.node_rows(), self._query)


class NodePage(Topic):
    """``node/NAME``: one node with its GPUs and pods, and what was found wrong with it."""

    kinds = frozenset({"Node", "Event"})

    def __init__(self, world: ClusterCache, session: Session, name: str) -> None:
        super().__init__(world, session)
        self._name = name

    def concerns(self, kind: str, namespace: str, name: str) -> bool:
        """Tell whether a change is of the node."""
        return kind in self.kinds and name == self._name

    async def picture(self) -> Picture:
        """Return the node; pods that the user may not list are counted."""
        if (instead := await self.no_nodes()) is not None:
            return instead
        one = self.world.node(self._name)
        if one is None:
            return Picture({"missing": True})
        health, usage = self.world.health.get("", one.name), self.world.usage.get("", one.name)
        sees = await self.sees(PODS)
        facts = {
            "node": cluster.detail(one, sees),
            "findings": node_list.findings(health),
            "devices": node_list.devices(usage),
        }
        return Picture(facts)


class Queues(Topic):
    """``queues``: all queues as a tree, with what each is promised, uses and borrows."""

    kinds = frozenset({"Queue"})

    async def picture(self) -> Picture:
        """Return the queues, each behind the one that it is part of."""
        if not await self.world.cluster_ready():
            return unread(self.world)
        rights = self.session.rights
        sees = await rights.lister(QUEUES, set)
        seen = [queue for queue in self.world.queues if sees(queue.metadata.name)]
        if not seen and not sees(""):
            return forbidden(QUEUES)
        gpus = 0
        if await rights.may_list(NODES, ""):
            gpus = cluster.totals(self.world.node_rows())["gpus"]
        return queue_tree.page(seen, gpus)


class Waste(Topic):
    """``waste``: who holds how many GPUs and how little they do."""

    kinds = frozenset({"Node"})

    async def picture(self) -> Picture:
        """Return a row for each job that holds GPUs, the most wasteful first."""
        if (instead := await self.no_nodes()) is not None:
            return instead
        return waste.page(self.world.node_rows(), await self.sees(PODS))


class Home(Topic):
    """``home``: the user's own jobs, what is left of their queues, and advice."""

    kinds = frozenset({"TrainingJob", "Gang", "Queue", "Node"})

    async def picture(self) -> Picture:
        """Return the page; what the user may not list is left out."""
        rights = self.session.rights
        sees = await rights.lister(TRAINING_JOBS, self.world.job_list.namespaces)
        ready = await self.world.cluster_ready()
        rows = None
        if ready and await rights.may_list(NODES, ""):
            rows = self.world.node_rows()
        queues = None
        if ready:
            reads = await rights.lister(QUEUES, set)
            names = (one.metadata.name for one in self.world.queues)
            seen = frozenset(filter(reads, names))
            if seen or reads(""):
                queues = {q.metadata.name: q for q in self.world.queues if q.metadata.name in seen}
        return home.page(
            home.Seen(
                self.session.user,
                self.world.job_list,
                sees,
                lambda row: self.world.gangs.get(row.namespace, row.name),
                queues,
                rows,
            )
        )
