"""The models of a server, and requests that arrive together as one batch."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lockstep.serve.server.frameworks import Model

Array = np.ndarray[Any, Any]

MOST_ROWS = 1024


class Unknown(Exception):
    """A model that is not here."""


class Unfit(ValueError):
    """An input that the model cannot take."""


@dataclass
class _Batch:
    """Inputs of one shape and type that came in one turn of the loop."""

    inputs: list[Array] = field(default_factory=list)
    answers: list[asyncio.Future[Array]] = field(default_factory=list)


class Repository:
    """Models by name."""

    def __init__(self) -> None:
        self._models: dict[str, Model] = {}
        self._due: dict[tuple[str, tuple[int, ...], str], _Batch] = {}

    def add(self, model: Model) -> None:
        """Serve *model*."""
        self._models[model.name] = model

    @property
    def names(self) -> list[str]:
        """Return the names of the models."""
        return sorted(self._models)

    def get(self, name: str) -> Model:
        """Return the model called *name*.

        Raises:
            Unknown: when there is none; the message names those there are.
        """
        found = self._models.get(name)
        if found is None:
            there = ", ".join(self.names) or "none yet"
            raise Unknown(f"there is no model {name!r}; there are: {there}")
        return found

    def predict(self, model: Model, rows: Array) -> asyncio.Future[Array]:
        """Return what the model says to *rows*; what comes in the same turn goes in one batch.

        Raises:
            Unfit: when the rows are not as the model needs them.
        """
        if rows.ndim < 1 or not len(rows):
            raise Unfit("at least one instance is needed")
        width = rows.shape[1] if rows.ndim == 2 else None
        if model.features is not None and width != model.features:
            shown = list(rows.shape)
            raise Unfit(f"the model takes rows of {model.features} numbers, not shape {shown}")
        key = (model.name, rows.shape[1:], rows.dtype.str)
        batch = self._due.get(key)
        loop = asyncio.get_running_loop()
        if batch is None:
            batch = self._due[key] = _Batch()
            loop.call_soon(self._run, key, model)
        answer: asyncio.Future[Array] = loop.create_future()
        batch.inputs.append(rows)
        batch.answers.append(answer)
        if sum(map(len, batch.inputs)) >= MOST_ROWS:
            self._run(key, model)
        return answer

    def _run(self, key: tuple[str, tuple[int, ...], str], model: Model) -> None:
        batch = self._due.pop(key, None)
        if batch is None:
            return
        try:
            joined = batch.inputs[0] if len(batch.inputs) == 1 else np.concatenate(batch.inputs)
            found = np.asarray(model.predict(joined))
            if len(found) != len(joined):
                raise ValueError(f"{len(found)} answers to {len(joined)} rows")
        except Exception as error:
            logging.warning("model %s failed: %s", model.name, error)
            self._fail(batch, model, error)
            return
        start = 0
        for rows, answer in zip(batch.inputs, batch.answers, strict=True):
            if not answer.done():
                answer.set_result(found[start : start + len(rows)])
            start += len(rows)

    def _fail(self, batch: _Batch, model: Model, error: Exception) -> None:
        """Tell all of *batch* that the model failed; each of several is tried alone first."""
        for rows, answer in zip(batch.inputs, batch.answers, strict=True):
            if answer.done():
                continue
            try:
                if len(batch.inputs) == 1:
                    raise error
                answer.set_result(np.asarray(model.predict(rows)))
            except Exception as cause:
                answer.set_exception(Unfit(f"the model refused the input: {cause}"))
