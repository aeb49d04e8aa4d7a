"""Checkpoints in memory: three lines in the user's program.

::

    ckpt = lockstep.train.Checkpointer(model=model, optimizer=optimizer)
    for step in range(ckpt.restore(), steps):
        ...
        ckpt.step(step + 1)

The copies lie with the launcher of the pod and outlive the rank. Without a launcher nothing is kept
and training begins at step 0.
"""

from __future__ import annotations

import json
import os
import random
import sys
import zlib
from collections.abc import Collection
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from lockstep.train import shards, storage
from lockstep.train.batches import Batches
from lockstep.train.catalogue import NotStored
from lockstep.train.copying import Copier, Pairs, owned, pin, shareable
from lockstep.train.layout import Layout, shapes_of, view
from lockstep.train.memory import ask
from lockstep.train.segment import BadSegment, Segment, Whole
from lockstep.train.state import put_together, take_apart

_ROOM = 64 << 10
"""Bytes that plain values may grow by before the memory is laid out anew."""


class Stateful(Protocol):
    """What has a state that can be read and set: modules, optimizers, schedulers, samplers."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Take on a state."""


class CheckpointLost(RuntimeError):
    """The step that everybody goes on from is not in this rank's memory."""


class Checkpointer:
    """Keeps the state of what it is given, and of the random number generators, at each step."""

    made: ClassVar[bool] = False
    """Whether the program has one."""

    def __init__(self, **parts: Stateful) -> None:
        """Take the *parts* to keep, each under its name.

        Raises:
            TypeError: when one of them has no ``state_dict`` and ``load_state_dict``.
        """
        for name, part in parts.items():
            if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise TypeError(
                    f"{name} is a {type(part).__name__}, which has no state_dict and "
                    "load_state_dict"
                )
        if _RANDOM in parts:
            raise TypeError(
                f"{_RANDOM} is taken by the random number generators; name it otherwise"
            )
        type(self).made = True
        self._parts = parts
        self._socket = os.environ.get("LOCKSTEP_SOCKET", "")
        self._local = int(os.environ.get("LOCAL_RANK", "0"))
        self._generation = int(os.environ.get("LOCKSTEP_GENERATION", "0"))
        self._room: _Room | None = None
        self._copier = Copier() if self._socket else None
        self._sums_at = 0
        """Step from which on the launcher is told checksums again; they show what ranks share."""

    def restore(self, step: int | None = None) -> int:
        """Take on the newest state that all ranks have, and return how many steps it holds.

        With *step*, take on that one, which must be in this rank's memory.

        Raises:
            CheckpointLost: when all go on from a step that this rank's memory does not hold.
        """
        wanted = os.environ.get("LOCKSTEP_RESUME", "")
        if not self._socket or not wanted:
            return 0
        state, found = self._read(int(wanted) if step is None else step, self._parts)
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        _set_random_state(state[_RANDOM], found)
        return found

    def peek(self, name: str) -> Any:
        """Return what is kept of one part.

        Raises:
            CheckpointLost, KeyError: when nothing is.
        """
        return self._read(int(os.environ["LOCKSTEP_RESUME"]), (name,))[0][name]

    def _read(self, step: int, names: Collection[str]) -> tuple[Any, int]:
        stored = os.environ.get("LOCKSTEP_STORED", "")
        if stored and step == int(os.environ["LOCKSTEP_RESUME"]):
            return self._load_stored(storage.at(stored), step), step
        if (there := self._kept(step)) is None:
            raise CheckpointLost(f"step {step} is not in the memory of local rank {self._local}")
        return self._load(*there, names), step

    def _kept(self, step: int) -> tuple[Segment, Whole] | None:
        """Return where the memory of this rank holds *step*."""
        _, files = ask(self._socket, {"do": "attach", "local": self._local})
        found = None
        for fd in files:
            segment = Segment(fd)
            os.close(fd)
            for whole in segment.whole():
                if whole.step == step and found is None:
                    found = segment, whole
        return found

    def compare(self, step: int, but: Collection[str]) -> str | None:
        """Return the first name in which the state differs from that of *step* in memory.

        Parts named in *but* are left out. None where it is the same, bit by bit.

        Raises:
            CheckpointLost: when the memory does not hold the step.
        """
        if (there := self._kept(step)) is None:
            raise CheckpointLost(f"step {step} is not in the memory of local rank {self._local}")
        segment, whole = there
        state = {name: part.state_dict() for name, part in self._parts.items()}
        plain, tensors = take_apart({**state, _RANDOM: _random_state()}, torch.is_tensor)
        table, kept, start = _words(segment, whole)
        for entry in table:
            key = entry["key"]
            if key.partition(".")[0] not in but:
                one = view(memoryview(segment.map), start, entry)
                if key not in tensors or not _same(shards.local(tensors[key]), one):
                    return str(key)
        before = dict(kept["!d"])
        return next((n for n, one in plain["!d"] if n not in but and one != before.get(n)), None)

    def step(self, number: int) -> None:
        """Keep the state after *number* steps.

        Raises:
            NotPlain: when a part's state holds what is neither tensor nor plain data.
            MemoryError: when two copies of the state do not fit into the pod's memory.
        """
        for part in self._parts.values():
            if isinstance(part, Batches):
                part.stepped()
        if self._copier is None:
            return
        self._copier.wait()
        if self._room is not None and not self._room.keeps(number):
            self._room.finished(number)
            return
        state = {name: part.state_dict() for name, part in self._parts.items()}
        state[_RANDOM] = _random_state()
        plain, tensors = take_apart(state, torch.is_tensor)
        text = json.dumps(plain).encode()
        if self._room is None or not self._room.fits(tensors, len(text)):
            self._room = self._make(tensors, len(text), shareable(self._parts.values()))
        free = owned(self._parts.values())
        self._room.write(tensors, text, number, self._generation, copier=self._copier, free=free)
        if self._room.saves(number):
            self._copier.wait()
            # Answered once the launcher has a copy of its own: no rank waits for the disk.
            ask(self._socket, {"do": "save", "local": self._local, "step": number})
        if number >= self._sums_at:
            while self._sums_at <= number:
                self._sums_at = self._sums_at * _SUMS_RARER or 1
            self._tell_sums(tensors, {**state, _RANDOM: None}, number)

    def _tell_sums(self, tensors: dict[str, Tensor], state: Any, number: int) -> None:
        """Tell checksums of what ranks may share, and of their own parts but random numbers."""
        shared = self._room.shared if self._room is not None else frozenset()
        plain = json.dumps(take_apart(state, torch.is_tensor)[0]).encode()
        sums = [0, zlib.crc32(plain)]
        for key, tensor in tensors.items():
            # Of a tensor that is spread each rank has another part; that is no difference.
            if not key.startswith(f"{_RANDOM}.") and not shards.is_sharded(tensor):
                which = key not in shared
                sums[which] = _sum(tensor, sums[which])
        told = {"do": "first", "local": self._local, "step": number}
        ask(self._socket, {**told, "sum": sums[0], "own": sums[1]})

    def _make(self, tensors: dict[str, Tensor], plain: int, alike: set[int]) -> _Room:
        layout = Layout.of(tensors, 2 * plain + _ROOM, alike)
        request = {"do": "make", "local": self._local, "bytes": layout.size, "layout": layout.sum}
        request |= {"rank": _rank(), "size": _size(), "sharded": layout.sharded}
        request["split"] = [layout.shared_bytes, layout.shared_sum]
        request["python"] = sys.executable
        answer, files = ask(self._socket, request)
        if error := answer.get("error"):
            raise MemoryError(error)
        segment = Segment(files[0], populate=True)
        os.close(files[0])
        return _Room(segment, layout)

    def _load(self, segment: Segment, whole: Whole, names: Collection[str]) -> Any:
        """Return the state in *whole*, of the parts in *names* and the random numbers alone."""
        table, plain, start = _words(segment, whole)
        memory = memoryview(segment.map)
        wanted = {*names, _RANDOM}
        templates = self._templates() if any("size" in entry for entry in table) else {}
        tensors = [
            # Copies of its own: the memory is written again at the next step.
            _spread(entry, view(memory, start, entry).clone(), templates)
            if entry["key"].partition(".")[0] in wanted
            else None
            for entry in table
        ]
        state = put_together(plain, tensors)
        if (theirs := state[_RANDOM]["rank"]) != _rank():
            sys.stderr.write(
                f"lockstep: rank {_rank()} goes on from the copy of rank {theirs}, with random "
                "numbers of its own\n"
            )
        return state

    def _load_stored(self, directory: storage.Place, step: int) -> Any:
        from lockstep.train.loading import Stored

        try:
            stored = Stored(directory, step, _rank(), _size())
            return stored.state(self._templates())
        except NotStored as error:
            raise CheckpointLost(str(error)) from error

    def _templates(self) -> dict[str, Tensor]:
        """Return the tensors as they are now, which tell how they are spread over ranks."""
        for part in self._parts.values():
            shards.prepare(part)
        state = {name: part.state_dict() for name, part in self._parts.items()}
        return take_apart(state, torch.is_tensor)[1]


_RANDOM = "random"
_SUMS_RARER = 64
"""Checksums are told after the first step, and after those with 64, 64², 64³ of them."""


def _sum(tensor: Tensor, total: int) -> int:
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(flat.numpy().data, total)


def _words(segment: Segment, whole: Whole) -> tuple[list[Any], Any, int]:
    """Return table and plain values of a copy, and where its tensors begin."""
    start = segment.start(whole.slot)
    table = json.loads(segment.read(start, whole.table))
    return table, json.loads(segment.read(start + whole.table, whole.plain)), start + whole.data


def _same(one: Tensor, other: Tensor) -> bool:
    pair = [t.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for t in (one, other)]
    return bool(torch.equal(*pair))


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


def _size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def _spread(entry: Any, part: Tensor, templates: dict[str, Tensor]) -> Tensor:
    """Return a rank's own *part* as the tensor that it belongs to."""
    if "size" not in entry:
        return part
    template = templates.get(entry["key"])
    now = shards.chunk(template) if template is not None else None
    if template is None or now is None or list(now.at) != entry["at"] or now.shape != part.shape:
        raise CheckpointLost(f"{entry['key']} is spread over ranks in another way than before")
    return shards.like(template, part)


def _random_state() -> Any:
    state: dict[str, Any] = {
        "rank": _rank(),
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state: dict[str, Any], step: int) -> None:
    if state["rank"] != _rank() or state["torch"] is None:
        # Another rank's state: with its random numbers, both would drop the same activations.
        seed = zlib.crc32(f"{step}/{_rank()}".encode())
        random.seed(seed)
        torch.manual_seed(seed)
        return
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


class _Room:
    """The memory of this rank, laid out for its tensors."""

    def __init__(self, segment: Segment, layout: Layout) -> None:
        if segment.layout != layout.sum:
            raise BadSegment("the memory handed over is laid out for something else")
        self._segment, self._layout = segment, layout
        memory = memoryview(segment.map)
        self._pinned = False
        starts = [segment.start(slot) + layout.data for slot in (0, 1)]
        self._views = [[view(memory, at, one) for one in layout.entries] for at in starts]

    @property
    def shared(self) -> frozenset[str]:
        """Keys of the tensors that all ranks may hold alike."""
        return self._layout.shared

    def fits(self, tensors: dict[str, Tensor], plain: int) -> bool:
        """Say whether the state still has the layout that the memory has."""
        return plain <= self._layout.room and shapes_of(tensors) == self._layout.shapes

    def saves(self, step: int) -> bool:
        """Say whether the state after *step* steps is to be saved beyond the pod's life."""
        every = self._segment.save_every
        return every > 0 and step % every == 0

    def keeps(self, step: int) -> bool:
        """Say whether the state after *step* steps is to be copied at all.

        A copy that another launcher still reads must not be written over too soon.
        """
        every = self._segment.keep_every
        return every <= 1 or step % every == 0

    def finished(self, step: int) -> None:
        """Note a step that is not copied."""
        self._segment.progress = step

    def write(
        self,
        tensors: dict[str, Tensor],
        plain: bytes,
        step: int,
        generation: int,
        *,
        copier: Copier,
        free: set[int],
    ) -> None:
        """Copy everything into the slot that is not the newest, and mark it as whole.

        What lies where *free* says may be copied beside the next step's passes.
        """
        segment, layout = self._segment, self._layout
        slot = segment.begin()
        start = segment.start(slot)
        sources = [shards.local(tensor.detach()) for tensor in tensors.values()]
        now, later = copier.split(list(zip(self._views[slot], sources)), free)
        if later:
            self._pin(later)
        with torch.no_grad():
            for view, source in now:
                view.copy_(source)
        at = start + len(layout.table)
        segment.map[start:at] = layout.table
        segment.map[at : at + len(plain)] = plain
        lengths = (len(layout.table), len(plain), layout.data, layout.size - layout.data)
        if later:
            copier.start(later, lambda: segment.end(slot, step, generation, lengths))
        else:
            segment.end(slot, step, generation, lengths)

    def _pin(self, pairs: Pairs) -> None:
        """Pin the memory once where a GPU copies into it."""
        if self._pinned or not any(source.is_cuda for _, source in pairs):
            return
        self._pinned = True
        memory = torch.frombuffer(self._segment.map, dtype=torch.uint8)
        if not pin(memory.data_ptr(), memory.numel()):
            sys.stderr.write("lockstep: the copies' memory cannot be pinned: they are slower\n")
