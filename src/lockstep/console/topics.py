"""What a browser can follow: each topic tells what changed since it was asked last."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from lockstep.api.core import NODES
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.views import picture
from lockstep.console.views.picture import EMPTY, Picture


class Topic(abc.ABC):
    """One view of one user."""

    kinds: frozenset[str] = frozenset()
    """Whose changes it shows."""

    def __init__(self, world: ClusterCache, session: Session) -> None:
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

    async def no_nodes(self) -> Picture | None:
        """Return what is shown to a user who may not list nodes, or before they are read."""
        if not await self.session.rights.may_list(NODES, ""):
            return forbidden(NODES)
        return None if await self.world.cluster_ready() else unread(self.world)

    async def sees(self, res: Resource[Any]) -> Callable[[str], bool]:
        """Return what tells of which namespaces the user may list a kind."""
        return await self.session.rights.lister(res, self.world.namespaces)


def forbidden(res: Resource[Any], namespace: str = "") -> Picture:
    """Return what is shown in place of what the user may not list: the right that is missing."""
    group = f".{res.group}" if res.group else ""
    return Picture({"forbidden": f"list {res.plural}{group}", "namespace": namespace})


def unread(world: ClusterCache) -> Picture:
    """Return what is shown while the API server does not answer."""
    return Picture({"unread": world.problem() or "the API server is being read"})
