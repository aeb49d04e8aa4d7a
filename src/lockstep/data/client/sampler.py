"""A sampler that tells the node's cache in which order it reads, and goes on after a change."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import Any

from lockstep.data.client.connection import Connection, Endpoint
from lockstep.data.client.files import Files
from lockstep.data.core.epochs import permutation, share


class EpochSampler:
    """Yields the numbers of samples for one rank, shuffled by *seed* and epoch.

    The order of an epoch is the same for every number of ranks, and the position in it counts the
    samples of all ranks: after a change of the world each sample is still read once an epoch. Ranks
    differ by one sample at most; *even* leaves out the last few samples so that they do not.
    """

    def __init__(
        self,
        files: Files | int,
        *,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
        even: bool = False,
    ) -> None:
        """Sample *files*, or as many samples as a number says.

        Raises:
            ValueError: when *rank* is none of *world*.
        """
        if not 0 <= rank < world:
            raise ValueError(f"rank is {rank}: it must be from 0 to {world - 1}")
        self.count = files if isinstance(files, int) else len(files)
        self.seed, self.rank, self.world = seed, rank, world
        self.shuffle, self.even = shuffle, even
        self.epoch = self._start = self._yielded = 0
        self._taken: int | None = None
        self._files = None if isinstance(files, int) else files
        self._reader = f"{os.environ.get('HOSTNAME', '')}-{uuid.uuid4().hex[:8]}"

    def set_epoch(self, epoch: int) -> None:
        """Begin *epoch*; the one that is under way already goes on where it is."""
        if epoch != self.epoch:
            self.epoch, self._start, self._yielded, self._taken = epoch, 0, 0, None

    def taken(self, samples: int) -> None:
        """Say how many samples of this epoch training has taken here since it (re)started.

        A ``DataLoader`` asks ahead; without this the position counts what was asked for.
        """
        self._taken = samples

    def _mine(self) -> list[int]:
        if self.shuffle:
            order = permutation(self.seed, self.epoch, self.count)
        else:
            import numpy as np

            order = np.arange(self.count, dtype=np.int64)
        if self.even:
            order = order[: self._start + (self.count - self._start) // self.world * self.world]
        found: list[int] = share(order, self._start, self.rank, self.world).tolist()
        return found

    def __len__(self) -> int:
        return len(self._mine())

    def __iter__(self) -> Iterator[int]:
        """Yield this rank's samples of the epoch; the next time those of the next epoch."""
        if self._yielded and self._yielded >= len(self):
            self.set_epoch(self.epoch + 1)
        self._yielded = 0
        self.publish()
        for one in self._mine():
            self._yielded += 1
            yield one

    def publish(self) -> None:
        """Tell the cache what is read next, where the dataset is read through one.

        A cache that does not answer costs speed alone.
        """
        if self._files is None:
            return
        with contextlib.suppress(OSError, ValueError):
            endpoint = Endpoint.of_view(self._files.root)
            if endpoint is not None:
                Connection(endpoint, timeout=10.0).post("order", self._order(self._files))

    def _order(self, files: Files) -> dict[str, Any]:
        return {
            "reader": self._reader,
            "path": files.path,
            "suffix": files.suffix,
            "count": self.count,
            "seed": self.seed,
            "epoch": self.epoch,
            "start": self._start,
            "rank": self.rank,
            "world": self.world,
            "shuffle": self.shuffle,
        }

    def state_dict(self) -> dict[str, int]:
        """Return the position, for the job's checkpoint; it is the same on all ranks in step."""
        taken = self._yielded if self._taken is None else self._taken
        return {"epoch": self.epoch, "position": self._start + taken * self.world}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on at a position, also of a world of another size.

        Raises:
            KeyError: when it is none.
        """
        self.epoch, self._start = state["epoch"], min(state["position"], self.count)
        self._yielded, self._taken = 0, None
