"""The shell around Kubeflow's Tensorboard: a Notebook that runs it, and its status."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api import timestamp
from lockstep.api.merge import difference
from lockstep.api.meta import owned_by
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, Notebook
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS, Tensorboard, notebook, status
from lockstep.compat.translation import Refused
from lockstep.kube.informer import Informer
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.runtime.actions import Action, Change, Create, Decision, Note
from lockstep.runtime.controller import Key
from lockstep.runtime.reconciler import Writer


@dataclass
class TensorboardController:
    """Keeps one notebook for each Tensorboard, and mends what is changed of it."""

    writer: Writer
    boards: Informer[Tensorboard]
    notebooks: Informer[Notebook]
    ownership: KindOwnership
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the Tensorboard at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        board = self.boards.get(*key)
        if board is None or board.metadata.deletion_timestamp is not None:
            return None
        if not await self.ownership.ours(board.metadata):
            return None
        made = self.notebooks.get(*key)
        problem = ""
        try:
            wanted = notebook(board)
            if made is not None and not owned_by(made, board):
                remedy = "give the Tensorboard another name"
                raise Refused("metadata.name", board.metadata.name, remedy)
        except Refused as refused:
            problem = str(refused.problem)
            self.writer.tell(TENSORBOARDS, board, Note("Refused", problem, warning=True))
            made, actions = None, []
        else:
            actions = _actions(made, wanted)
        now = timestamp.show(self.clock())
        decision = Decision(status(board, made, problem, now), actions)
        return await self.writer.carry_out(TENSORBOARDS, board, decision)


def _actions(made: Notebook | None, wanted: dict[str, Any]) -> list[Action]:
    if made is None:
        return [Create(NOTEBOOKS, wanted)]
    change = difference({"template": made.spec.template}, wanted["spec"])
    return [Change.of(NOTEBOOKS, made.metadata, {"spec": change})] if change else []
