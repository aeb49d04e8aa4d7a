"""Budgets that are spent hold gangs that have not started: by an annotation with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import CREATOR_ANNOTATION, HELD_ANNOTATION
from lockstep.insight.budget_watch import SECONDS, BudgetWatch
from lockstep.insight.cost.budgets import HELD_BY, held
from lockstep.kube.client import Client
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key

SOON: Final = 0.5


@dataclass
class BudgetHold:
    """Holds and releases gangs; what others wrote into the annotation is left alone."""

    client: Client
    gangs: Informer[Gang]
    watch: BudgetWatch

    async def reconcile(self, key: Key) -> float | None:
        """Hold the gang at *key*, or let it go; return when to look again.

        Raises:
            ApiError: when the server cannot be used now.
        """
        gang = self.gangs.get(*key)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            return None
        if not self.watch.counted:
            return SOON  # what an earlier life held is not let go before that is known
        said = gang.metadata.annotations.get(HELD_ANNOTATION, "")
        wanted = self._wanted(gang)
        if said == wanted or (said and not said.startswith(HELD_BY)):
            return None if gang.status.placed_at else SECONDS
        meta = gang.metadata
        change = {"annotations": {HELD_ANNOTATION: wanted or None}}
        # Against the version that was seen: a gang that has been placed meanwhile is left alone.
        body = {"metadata": {**change, "resourceVersion": meta.resource_version}}
        try:
            await self.client.patch(GANGS, meta.name, body, meta.namespace)
        except Conflict:
            return 0.1
        except NotFound:
            return None
        return SECONDS

    def _wanted(self, gang: Gang) -> str:
        if gang.status.placed_at:
            return ""
        meta = gang.metadata
        user = meta.annotations.get(CREATOR_ANNOTATION, "")
        return held(gang.spec.queue, meta.namespace, user, self.watch.standings)
