"""What a program learned the first time: its numbers, random states, orders and found files."""

from __future__ import annotations

import json
import random
import struct
import sys
from array import array
from typing import Any

import torch

_FIRST = 32 << 10
"""Bytes that numbers take at first."""
LONGEST = 64 << 20
"""Bytes of numbers from which on a program reads too many of them."""
_EIGHT = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_TOLD = "torch.optim.lr_scheduler"


def padded(data: bytes, least: int = 64 << 10) -> torch.Tensor:
    """Return *data* with its length in a tensor whose size is a power of two: it changes rarely."""
    size = least
    while size < _EIGHT.size + len(data):
        size *= 2
    raw = bytearray(size)
    raw[: _EIGHT.size + len(data)] = _EIGHT.pack(len(data)) + data
    return torch.frombuffer(raw, dtype=torch.uint8)


def unpadded(kept: torch.Tensor) -> bytes:
    """Return what was padded."""
    raw = kept.numpy().tobytes()
    (size,) = _EIGHT.unpack_from(raw)
    return bytes(raw[_EIGHT.size : _EIGHT.size + size])


class Diverged(RuntimeError):
    """The program does not do what it did the first time."""


class Tape:
    """The numbers that the program read out of tensors, in order, and its random states."""

    def __init__(self) -> None:
        self.count, self.at = 0, 0
        self._memory = bytearray()
        self.begin = states()
        """Random states at the begin of the program."""
        self.found: dict[str, list[list[int]]] = {}
        """By question and path, whether the program found a file there, and how often in a row."""
        self.orders: dict[str, Any] = {}
        """By loader: its number of iterations, and the random states at the begin of the last."""

    def add(self, value: Any) -> None:
        """Note a number."""
        self._memory += _FLOAT.pack(value) if isinstance(value, float) else _EIGHT.pack(int(value))
        self.count += 1
        self.at = self.count

    def next(self, kind: type) -> Any:
        """Return the number that follows, of *kind*.

        Raises:
            Diverged: when the program read no more the first time.
        """
        if self.at >= self.count:
            raise Diverged("the program reads more out of its tensors than the first time")
        unpack = _FLOAT if kind is float else _EIGHT
        self.at += 1
        return kind(unpack.unpack_from(self._memory, (self.at - 1) * 8)[0])

    def answered(self, question: str, found: bool) -> None:
        """Note whether the program found a file."""
        answers = self.found.setdefault(question, [])
        if answers and answers[-1][0] == found:
            answers[-1][1] += 1
        else:
            answers.append([int(found), 1])

    def answer(self, question: str, at: int) -> bool | None:
        """Return what the program found at the time *at* that it asked; None: not known."""
        for found, times in self.found.get(question, []):
            if at < times:
                return bool(found)
            at -= times
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return all of it."""
        kept = padded(bytes(self._memory), _FIRST)
        orders = padded(json.dumps([self.orders, self.found]).encode(), 256 << 10)
        return {"kept": kept, "orders": orders, "count": self.count, "begin": self.begin}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on behind what *state* holds."""
        self._memory = bytearray(unpadded(state["kept"]))
        self.orders, self.found = json.loads(unpadded(state["orders"]))
        self.count, self.begin = state["count"], state["begin"]


def states() -> dict[str, Any]:
    """Return the states of the random number generators of Python, torch and NumPy, in plain."""
    version, numbers, gauss = random.getstate()
    # As text: thousands of numbers would each be looked at.
    found: dict[str, Any] = {
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
        "python": [version, array("Q", numbers).tobytes().hex(), gauss],
    }
    if (numpy := sys.modules.get("numpy")) is not None and hasattr(numpy, "random"):
        kind, keys, *rest = numpy.random.get_state()
        found["numpy"] = [str(kind), keys.tobytes().hex(), *map(float, rest)]
    return found


def put(found: dict[str, Any]) -> None:
    """Set the random number generators to the states *found*."""
    raw = bytearray.fromhex(found["torch"])
    torch.set_rng_state(torch.frombuffer(raw, dtype=torch.uint8))
    version, numbers, gauss = found["python"]
    random.setstate((version, tuple(array("Q", bytes.fromhex(numbers))), gauss))
    if "numpy" in found and (numpy := sys.modules.get("numpy")) is not None:
        kind, keys, at, has, gauss = found["numpy"]
        numbers = numpy.frombuffer(bytes.fromhex(keys), dtype="uint32")
        numpy.random.set_state((kind, numbers, int(at), int(has), gauss))


class Numbers:
    """The random states, as a part of what is kept."""

    def state_dict(self) -> dict[str, Any]:
        """Return them."""
        return states()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set them."""
        put(state)


def is_of_program(frame: Any) -> bool:
    """Say whether code of the program runs in *frame*, and none of torch or ours.

    A schedule that the program tells a loss counts as the program.
    """
    name = str(frame.f_globals.get("__name__", ""))
    return name == _TOLD or not name.startswith(("torch.", "lockstep.", "_lockstep_"))
