"""Tells whether Lockstep serves a foreign kind: it does where it installed the definition."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import CRDS
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.compat.foreign_kinds import DIALECT_LABEL
from lockstep.compat.translation import MANAGED_ANNOTATION
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound

_ASK_AGAIN: Final = 30.0


@dataclass
class KindOwnership:
    """Tells which objects of *resource* are ours to serve; asked again every half minute."""

    client: Client
    resource: Resource[Any]
    clock: Callable[[], float] = time.monotonic
    _known: tuple[float, bool] = (0.0, False)

    async def ours(self, about: ObjectMeta) -> bool:
        """Return whether an object is ours: its annotation says so, or its kind's definition.

        Raises:
            ApiError: when the server cannot be asked.
        """
        stated = about.annotations.get(MANAGED_ANNOTATION)
        if stated is not None:
            return stated == "true"
        until, known = self._known
        if self.clock() < until:
            return known
        name = f"{self.resource.plural}.{self.resource.group}"
        try:
            known = DIALECT_LABEL in (await self.client.get(CRDS, name)).metadata.labels
        except (NotFound, Forbidden):
            known = False
        self._known = (self.clock() + _ASK_AGAIN, known)
        return known
