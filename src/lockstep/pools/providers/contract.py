"""What a provider of nodes promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lockstep.api import names
from lockstep.api.core import Taint
from lockstep.api.node_pool import PoolRequest
from lockstep.api.wire import to_builtins
from lockstep.kube.errors import ApiError
from lockstep.pools.core.pool import Pool


class ProviderError(Exception):
    """A provider cannot do what it was asked; the message says why and what to do."""

    def __init__(self, message: str, reason: str = "ProviderFailed") -> None:
        super().__init__(message)
        self.reason = reason


def said(pool: Pool, error: ApiError, kind: str, install: str) -> str:
    """Return why the server did not do what a pool needs; *kind* may not be served there."""
    if error.status == 404:
        why = f"the server has no {kind}; {install}, or set another provider"
        return f"pool {pool.name}: {why}"
    return f"pool {pool.name}: {error}"


def taints(stated: Sequence[Taint], request: PoolRequest) -> list[dict[str, Any]]:
    """Return the taints of a new node: those stated, and one that holds it for its holders."""
    held = {"key": names.HELD_TAINT, "value": request.id, "effect": "NoSchedule"}
    return [*to_builtins(stated), *([held] if request.holders else [])]


OUT_OF_STOCK = "OutOfStock"
"""The reason of a provider that has no such nodes now."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Which machines there are, or soon will be, and why others that were asked for are not."""

    slots: frozenset[int]
    lost: Mapping[int, str] = field(default_factory=dict)


class Provider(Protocol):
    """Makes and removes the nodes of pools. Every call may come again and then changes nothing.

    A node that it makes bears the labels ``pool.labels(slot)``, the template's taints, and the
    taint ``lockstep.dev/held`` with the request's id where the request has holders.
    """

    removes_nodes: bool
    """Whether Node objects go with their machines by themselves."""

    async def create(self, pool: Pool, request: PoolRequest, slots: Sequence[int]) -> None:
        """Have nodes made for *slots* of *request*, all of them or none; return once it is taken.

        Raises:
            ProviderError: when it fails; its reason is ``OutOfStock`` where there are none now.
        """

    async def delete(self, pool: Pool, slots: Mapping[int, str]) -> None:
        """Remove the machines in some slots, with their nodes' names; what is gone is no error.

        Raises:
            ProviderError: when that cannot be done now.
        """

    async def present(self, pool: Pool) -> Presence:
        """Return the slots for which there is, or soon will be, a machine.

        Raises:
            ProviderError: when that cannot be told now.
        """
