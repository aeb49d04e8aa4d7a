"""Batches over any number of ranks: each sample once an epoch, also when the job grows or shrinks.

::

    batches = Batches(len(dataset), batch=256)
    ckpt = Checkpointer(model=model, optimizer=optimizer, batches=batches)
    start = ckpt.restore()
    loader = DataLoader(dataset, batch_sampler=batches)

The samples of all epochs are one long line, each epoch in an order of its own. A step takes the
next piece of it, and the ranks share that. What counts is how far the steps have come, not how far
a loader has read ahead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch import Tensor

from lockstep.train.state import Json


class Batches:
    """The indices of this rank's samples, a list a step; for ``DataLoader(batch_sampler=...)``."""

    def __init__(
        self,
        samples: int,
        *,
        batch: int | None = None,
        per_rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        """Divide *samples* into batches.

        *batch* is what all ranks take together in a step: it stays the same when their number
        changes, and so may the learning rate. *per_rank* is what each rank takes: with more ranks
        the whole batch grows, and the learning rate should with ``scale``.

        Raises:
            ValueError: when both or neither is given, or a rank would get no sample.
        """
        self._rank = int(os.environ.get("RANK", "0"))
        self._size = int(os.environ.get("WORLD_SIZE", "1"))
        if (batch is None) == (per_rank is None):
            raise ValueError("say either batch, of all ranks together, or per_rank")
        if samples < 1:
            raise ValueError(f"samples={samples}: there must be one at least")
        self._batch = batch if batch is not None else (per_rank or 0) * self._size
        if self._batch < self._size:
            raise ValueError(
                f"a batch of {self._batch} leaves some of {self._size} ranks without a sample: "
                "make it larger, or use fewer ranks"
            )
        self._samples, self._shuffle, self._seed = samples, shuffle, seed
        self._position = 0
        self._first_batch = self._batch
        self._order: tuple[int, Tensor | None] = (-1, None)

    @property
    def epoch(self) -> int:
        """Number of the present epoch, from 0."""
        return self._position // self._samples

    @property
    def scale(self) -> float:
        """The present batch of all ranks over the first: 1 where *batch* is given.

        By the linear rule the learning rate is multiplied by it, by the other by its square root.
        """
        return self._batch / self._first_batch

    @property
    def weight(self) -> float:
        """What to multiply a rank's mean loss by so that the mean over ranks is exact.

        It is 1 where the batch divides evenly.
        """
        mine = len(range(self._rank, self._batch, self._size))
        return mine * self._size / self._batch

    def __iter__(self) -> Iterator[list[int]]:
        """Yield this rank's part of each batch from here to the end of the epoch."""
        at, end = self._position, (self.epoch + 1) * self._samples
        while at < end:
            yield [self._at(at + i) for i in range(self._rank, self._batch, self._size)]
            at += self._batch

    def __len__(self) -> int:
        """Return how many batches are left of the epoch."""
        left = (self.epoch + 1) * self._samples - self._position
        return max(0, (left + self._batch - 1) // self._batch)

    def stepped(self) -> None:
        """Count one batch as done; ``Checkpointer.step`` does it."""
        self._position += self._batch

    def state_dict(self) -> Json:
        """Return how far the steps have come."""
        return {
            "position": self._position,
            "samples": self._samples,
            "seed": self._seed,
            "first_batch": self._first_batch,
        }

    def load_state_dict(self, state: Json) -> None:
        """Go on from *state* with the present number of ranks.

        Raises:
            ValueError: when it is of other samples, or of another order.
        """
        for name, own in (("samples", self._samples), ("seed", self._seed)):
            if state[name] != own:
                raise ValueError(
                    f"the checkpoint has {name}={state[name]} and the program {own}: its batches "
                    "would not go on where they were"
                )
        self._position, self._first_batch = state["position"], state["first_batch"]

    def _at(self, position: int) -> int:
        epoch, index = divmod(position, self._samples)
        if not self._shuffle:
            return index
        if self._order[0] != epoch:
            generator = torch.Generator().manual_seed((self._seed << 20) + epoch)
            self._order = epoch, torch.randperm(self._samples, generator=generator)
        order = self._order[1]
        return index if order is None else int(order[index])
