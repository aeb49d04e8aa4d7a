"""The shell around Kubeflow's Tensorboard: a Notebook that runs it, and its status."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.api import timestamp
from lockstep.api.merge import difference
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, Notebook
from lockstep.compat.kubeflow.tensorboard import TENSORBOARDS, Tensorboard, notebook, status
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.notebooks.installed import Installed


@dataclass
class TensorboardController:
    """Keeps one notebook for each Tensorboard, and mends what is changed of it."""

    client: Client
    boards: Informer[Tensorboard]
    notebooks: Informer[Notebook]
    recorder: Recorder
    installed: Installed
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the Tensorboard at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        board = self.boards.get(*key)
        if board is None or board.metadata.deletion_timestamp is not None:
            return None
        if not await self.installed.ours(board.metadata):
            return None
        made = self.notebooks.get(*key)
        problem = ""
        try:
            wanted = notebook(board)
            if made is not None and not _owned(made, board):
                remedy = "give the Tensorboard another name"
                raise Refused("metadata.name", board.metadata.name, remedy)
            await self._make(board, made, wanted)
        except Refused as refused:
            problem = str(refused.problem)
            self.recorder.event(board, "Warning", "Refused", problem)
            made = None
        except (Conflict, NotFound, AlreadyExists):
            return 0.1
        await self._write_status(board, made, problem)
        return None

    async def _make(
        self, board: Tensorboard, made: Notebook | None, wanted: dict[str, Any]
    ) -> None:
        space, name = board.metadata.namespace, board.metadata.name
        if made is None:
            await self.client.create(NOTEBOOKS, wanted, space)
        elif change := difference({"template": made.spec.template}, wanted["spec"]):
            await self.client.patch(NOTEBOOKS, name, {"spec": change}, space)

    async def _write_status(self, board: Tensorboard, made: Notebook | None, problem: str) -> None:
        now = timestamp.show(self.clock())
        patch = difference(board.status, status(board, made, problem, now))
        if patch:
            about = board.metadata
            await self.client.patch(
                TENSORBOARDS, about.name, {"status": patch}, about.namespace, subresource="status"
            )


def _owned(made: Notebook, board: Tensorboard) -> bool:
    return any(one.uid == board.metadata.uid for one in made.metadata.owner_references)
