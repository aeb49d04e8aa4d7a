"""The models of a server, and requests that arrive together as one batch."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from lockstep.serve.server.frameworks import LoadError, Model
from lockstep.serve.server.inputs import Unfit, fit

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Future = asyncio.Future[Arrays]
Asked = tuple[dict[str, Array], int, Future]
"""Inputs, how many rows they have, and where the answer goes."""

MOST_ROWS: Final = 1024
INLINE: Final = 0.003
"""Seconds; a model that takes longer for a batch runs beside the loop, which answers meanwhile."""


class Unknown(Exception):
    """A model that is not here."""


class Failed(Exception):
    """A model that could not be loaded."""


@dataclass
class _Lane:
    """One model at work: what waits for it, in batches of inputs that can be joined."""

    model: Model
    due: dict[tuple[Any, ...], list[Asked]] = field(default_factory=dict)
    scheduled: bool = False
    busy: bool = False
    seconds: float = 0.0
    task: asyncio.Task[None] | None = None
    requests: int = 0
    rows: int = 0
    batches: int = 0

    @property
    def waiting(self) -> int:
        """Return how many requests wait for the model."""
        return sum(len(one) for one in self.due.values())


class Repository:
    """Models by name; *loader* brings those that are asked for by the repository's own calls."""

    def __init__(
        self,
        loader: Callable[[str, str], Model] | None = None,
        unloaded: Callable[[str], None] | None = None,
    ) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._loader, self._unloaded = loader, unloaded
        self._known: dict[str, str] = {}
        """States of models that are not served, by name: why."""
        self.settled = False
        """Whether it may have no model: those that come are loaded while it serves."""

    def add(self, model: Model) -> None:
        """Serve *model*, in place of another of its name."""
        there = self._lanes.get(model.name)
        if there is None or there.model is not model:
            self._lanes[model.name] = _Lane(model)
        self._known.pop(model.name, None)

    @property
    def names(self) -> list[str]:
        """Return the names of the models."""
        return sorted(self._lanes)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return what each model has done: requests, rows, batches, and requests that wait."""
        return {
            name: {
                "requests_total": lane.requests,
                "rows_total": lane.rows,
                "batches_total": lane.batches,
                "requests_waiting": lane.waiting,
            }
            for name, lane in sorted(self._lanes.items())
        }

    def get(self, name: str) -> Model:
        """Return the model called *name*.

        Raises:
            Unknown: when there is none; the message names those there are.
        """
        found = self._lanes.get(name)
        if found is None:
            there = ", ".join(self.names) or "none yet"
            raise Unknown(f"there is no model {name!r}; there are: {there}")
        return found.model

    def index(self) -> list[dict[str, str]]:
        """Return all models with their states, in the words of the protocol's repository."""
        ready = [{"name": name, "state": "READY", "reason": ""} for name in self.names]
        rest = [
            {"name": name, "state": "UNAVAILABLE", "reason": why}
            for name, why in sorted(self._known.items())
        ]
        return [*ready, *rest]

    async def load(self, name: str, uri: str = "") -> None:
        """Load the model called *name* from where the server's directory or file has it.

        *uri*, where given, is what the file has to say by now.

        Raises:
            Unknown: when this server loads no models by name.
            Failed: when there is none of that name, or it cannot be read.
        """
        if self._loader is None:
            raise Unknown("this server loads no further models: it was started for one")
        try:
            self.add(await asyncio.to_thread(self._loader, name, uri))
        except LoadError as error:
            self._known[name] = str(error)
            raise Failed(str(error)) from error

    def unload(self, name: str) -> None:
        """Serve the model called *name* no more.

        Raises:
            Unknown: when there is none.
        """
        self.get(name)
        del self._lanes[name]
        self._known[name] = "unloaded"
        if self._unloaded is not None:
            self._unloaded(name)

    # --- predictions ---

    def predict(self, model: Model, given: Arrays) -> Future:
        """Return what the model says; what waits for it meanwhile goes in one batch.

        Raises:
            Unfit: when the inputs are not as the model needs them.
        """
        inputs = fit(model, given)
        lane = self._lanes.get(model.name)
        if lane is None:
            raise Unfit(f"the model {model.name} was unloaded")
        rows = len(next(iter(inputs.values())))
        if any(len(one) != rows for one in inputs.values()) and model.batches:
            raise Unfit("inputs: all need the same number of rows")
        shapes = tuple((one.shape[1:], one.dtype.str) for one in inputs.values())
        lane.requests += 1
        lane.rows += rows
        loop = asyncio.get_running_loop()
        answer: Future = loop.create_future()
        # What cannot be joined has a batch of its own.
        key: tuple[Any, ...] = shapes if model.batches else (*shapes, id(answer))
        lane.due.setdefault(key, []).append((inputs, rows, answer))
        if not lane.scheduled and not lane.busy:
            lane.scheduled = True
            loop.call_soon(self._next, lane)
        return answer

    def _next(self, lane: _Lane) -> None:
        """Run what waits, batch after batch, until there is none or the model needs long."""
        lane.scheduled = False
        while lane.due and not lane.busy:
            key = next(iter(lane.due))
            waiting = lane.due.pop(key)
            count = rows = 0
            while count < len(waiting) and (count == 0 or rows + waiting[count][1] <= MOST_ROWS):
                rows += waiting[count][1]
                count += 1
            if rest := waiting[count:]:
                lane.due[key] = rest
            batch = waiting[:count]
            lane.batches += 1
            if lane.seconds < INLINE:
                self._settle(lane, batch, _run(lane.model, batch))
            else:
                lane.busy = True
                lane.task = asyncio.ensure_future(self._beside(lane, batch))

    async def _beside(self, lane: _Lane, batch: list[Asked]) -> None:
        try:
            self._settle(lane, batch, await asyncio.to_thread(_run, lane.model, batch))
        finally:
            lane.busy = False
        self._next(lane)

    @staticmethod
    def _settle(
        lane: _Lane,
        batch: list[Asked],
        found: tuple[list[Arrays | Exception], float],
    ) -> None:
        answers, seconds = found
        lane.seconds = 0.8 * lane.seconds + 0.2 * seconds
        for (_, _, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


def _run(model: Model, batch: list[Asked]) -> tuple[list[Arrays | Exception], float]:
    """Return an answer for each of *batch*, and the seconds; what is refused is tried alone."""
    start = time.perf_counter()
    try:
        found = _joined(model, batch)
    except Exception as error:
        logging.warning("model %s failed: %s", model.name, error)
        if len(batch) > 1:
            found = [_run(model, [one])[0][0] for one in batch]
        else:
            found = [Unfit(f"the model refused the input: {error}")]
    return found, time.perf_counter() - start


def _joined(model: Model, batch: list[Asked]) -> list[Arrays | Exception]:
    if len(batch) == 1:
        found = model.predict(batch[0][0])
        rows = batch[0][1]
        if model.batches and any(one.ndim and len(one) != rows for one in found.values()):
            raise ValueError(f"{[len(one) for one in found.values()]} answers to {rows} rows")
        return [found]
    names = batch[0][0]
    whole = {name: np.concatenate([inputs[name] for inputs, _, _ in batch]) for name in names}
    total = sum(rows for _, rows, _ in batch)
    found = model.predict(whole)
    if any(len(one) != total for one in found.values()):
        raise ValueError(f"{[len(one) for one in found.values()]} answers to {total} rows")
    answers: list[Arrays | Exception] = []
    start = 0
    for _, rows, _ in batch:
        answers.append({name: one[start : start + rows] for name, one in found.items()})
        start += rows
    return answers
