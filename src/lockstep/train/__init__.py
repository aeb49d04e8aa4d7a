"""Training that survives: what runs inside the container, beside and below the user's ranks.

``lockstep-run`` (:mod:`lockstep.train.run`) starts the ranks, outlives them and keeps their state
in memory; it needs the standard library alone and Python 3.9. In the ranks, :class:`Checkpointer`
keeps that state up to date and :class:`Batches` shares the samples out; torch is imported when they
are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.train.batches import Batches
    from lockstep.train.checkpointer import Checkpointer

__all__ = ["Batches", "Checkpointer"]


def __getattr__(name: str) -> Any:
    if name == "Checkpointer":
        from lockstep.train.checkpointer import Checkpointer

        return Checkpointer
    if name == "Batches":
        from lockstep.train.batches import Batches

        return Batches
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
