"""How a program is run again without its tensors: what it learned from them is told from a tape.

A program's loop counters, orders and schedules lie in its own Python, where they cannot be set. So
they are made again: the program runs from its begin, at the speed of its Python. A call of a module
returns what an earlier call returned, ``backward`` does nothing, and so does an optimizer without
gradients. Each number that the program reads out of a tensor (``item``, ``if loss < best``) is the
one of the first time, from a tape. Files are neither saved, renamed nor removed meanwhile.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from lockstep.train.tape import Tape, is_of_program, put, states

_FEW = 1024
"""Numbers that are read out of a tensor at once and kept."""


class Reels:
    """The program between its tensors and its Python: records, or winds."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.live, self.winding = True, False
        self.near: Callable[[], bool] = lambda: True
        """Whether the winding ends soon."""
        self._depth = 0
        self._thread = threading.get_ident()
        self._shapes: dict[Any, Any] = {}
        self._batches: dict[int, Any] = {}
        self._loaders_seen = 0
        self._asked: dict[str, int] = {}
        self._stepped = 0
        os.register_at_fork(after_in_child=self._end)
        self._modules()
        self._readings()
        self._backward()
        self._scalers()
        self._loaders()
        self._files()

    def _end(self) -> None:
        self.live = self.winding = False

    @property
    def _outside(self) -> bool:
        """Whether the program's own code runs, and no module."""
        return self.live and not self._depth and threading.get_ident() == self._thread

    def inside(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call what is no code of the program."""
        self._depth += 1
        try:
            return call(*args, **options)
        finally:
            self._depth -= 1

    def _replaced(self, owner: Any, name: str, made: Callable[[Any], Any]) -> None:
        setattr(owner, name, made(getattr(owner, name)))

    def _modules(self) -> None:
        reels = self

        def made(call: Any) -> Any:
            def called(module: Any, *args: Any, **options: Any) -> Any:
                if not reels._outside:
                    return call(module, *args, **options)
                if not reels.winding:
                    return reels.inside(call, module, *args, **options)
                given = [
                    tuple(one.shape) if isinstance(one, torch.Tensor) else None
                    for one in pytree.tree_leaves((args, options))
                ]
                key = id(module), module.training, torch.is_grad_enabled(), tuple(given)
                if key not in reels._shapes:
                    reels._shapes[key] = reels.inside(call, module, *args, **options)
                return pytree.tree_map(_shadow, reels._shapes[key])

            return called

        self._replaced(torch.nn.Module, "__call__", made)

    def _readings(self) -> None:
        reels = self

        def made(name: str, kind: type | None) -> Callable[[Any], Any]:
            def reading(natural: Any) -> Any:
                def read(tensor: Any) -> Any:
                    if not reels._outside or not is_of_program(sys._getframe(1)):
                        return natural(tensor)
                    what = kind or _kind(tensor)
                    if what is complex:
                        return natural(tensor)
                    if reels.winding:
                        return reels.tape.next(what)
                    value = natural(tensor)
                    reels.tape.add(what(value))
                    return value

                return read

            return reading

        kinds = {"item": None, "__float__": float, "__int__": int, "__bool__": bool}
        for name, kind in kinds.items():
            self._replaced(torch.Tensor, name, made(name, kind))

        def listed(natural: Any) -> Any:
            def read(tensor: Any, **options: Any) -> Any:
                few = tensor.numel() <= _FEW and not tensor.is_complex()
                program = few and reels._outside and is_of_program(sys._getframe(1))
                if not program or not tensor.is_floating_point():
                    return natural(tensor, **options)
                return natural(reels._again(tensor), **options)

            return read

        for name in ("tolist", "numpy", "__array__"):
            self._replaced(torch.Tensor, name, listed)

    def _again(self, tensor: Any) -> Any:
        """Return *tensor*, noted; while winding, one like it with the numbers of the first time."""
        flat = tensor.detach().cpu().double().reshape(-1)
        if not self.winding:
            for value in self.inside(flat.tolist):
                self.tape.add(value)
            return tensor
        numbers = [self.tape.next(float) for _ in range(flat.numel())]
        return torch.tensor(numbers, dtype=tensor.dtype).reshape(tensor.shape)

    def _backward(self) -> None:
        def made(backward: Any) -> Any:
            def noted(*args: Any, **options: Any) -> Any:
                return None if self.winding else self.inside(backward, *args, **options)

            return noted

        self._replaced(torch.Tensor, "backward", lambda one: _method(made(one)))
        self._replaced(torch.autograd, "backward", made)

    def stepped(self) -> None:
        """Note that an optimizer has stepped."""
        self._stepped += 1

    def _scalers(self) -> None:
        reels, kind = self, torch.amp.GradScaler

        def stepping(step: Any) -> Any:
            def done(scaler: Any, optimizer: Any, *args: Any, **options: Any) -> Any:
                if not reels.live or not scaler.is_enabled():
                    return step(scaler, optimizer, *args, **options)
                if not reels.winding:
                    before = reels._stepped
                    result = step(scaler, optimizer, *args, **options)
                    # The step itself was kept before this: what is wound ends inside of it.
                    reels.tape.add(reels._stepped > before)
                    return result
                at = reels.tape.at
                if at >= reels.tape.count or reels.tape.next(bool):
                    # What is kept inside of it does not know yet that it was made.
                    reels.tape.at = at
                    optimizer.step(*args, **options)
                if reels.winding:
                    reels.tape.at = at + 1
                else:
                    kept = scaler._per_optimizer_states[id(optimizer)]
                    none = torch.zeros((), device=scaler._scale.device)
                    kept["found_inf_per_device"] = {none.device: none}
                    reels.tape.add(True)
                return None

            return done

        def idle(natural: Any) -> Any:
            def done(scaler: Any, *args: Any, **options: Any) -> Any:
                return None if reels.winding else natural(scaler, *args, **options)

            return done

        self._replaced(kind, "step", stepping)
        for name in ("unscale_", "update"):
            self._replaced(kind, name, idle)

    def _loaders(self) -> None:
        reels = self
        loaders = importlib.import_module("torch.utils.data.dataloader")
        fetchers = importlib.import_module("torch.utils.data._utils.fetch")

        def iterating(iterate: Any) -> Any:
            def begun(loader: Any) -> Any:
                if reels.live:
                    reels._order(loader)
                return iterate(loader)

            return begun

        def fetching(fetch: Any) -> Any:
            def fetched(fetcher: Any, index: Any) -> Any:
                if not reels.live:
                    return fetch(fetcher, index)
                size = len(index) if isinstance(index, (list, tuple)) else -1
                if reels.winding and size in reels._batches and not reels.near():
                    return reels._batches[size]
                batch = reels.inside(fetch, fetcher, index)
                if reels.winding:
                    reels._batches[size] = batch
                return batch

            return fetched

        self._replaced(loaders.DataLoader, "__iter__", iterating)
        self._replaced(fetchers._MapDatasetFetcher, "fetch", fetching)

    def _order(self, loader: Any) -> None:
        """Have an iteration of *loader* draw the order that it drew the first time."""
        if (known := vars(loader).get("_lockstep_order")) is None:
            self._loaders_seen += 1
            known = [str(self._loaders_seen), 0]
        name, number = known[0], known[1] + 1
        vars(loader)["_lockstep_order"] = [name, number]
        order = self.tape.orders.get(name)
        if self.winding and order is not None and order[0] == number:
            put(order[1])
        elif not self.winding:
            self.tape.orders[name] = [number, states()]

    def _files(self) -> None:
        def made(natural: Any) -> Any:
            def done(*args: Any, **options: Any) -> Any:
                if self.winding and self._outside:
                    return None
                return natural(*args, **options)

            return done

        names = ("remove", "unlink", "rmdir", "rename", "replace", "chmod")
        places: list[tuple[Any, str]] = [(os, name) for name in names] + [
            (shutil, "rmtree"),
            (shutil, "move"),
        ]
        for owner, name in [*places, (torch, "save")]:
            self._replaced(owner, name, made)
        asked: list[tuple[Any, str]] = [(Path, name) for name in ("exists", "is_file", "is_dir")]
        asked += [(os.path, name) for name in ("exists", "isfile", "isdir")]
        for owner, name in asked:
            self._replaced(owner, name, functools.partial(self._asking, name))
        self._replaced(os, "mkdir", self._making)
        self._replaced(builtins, "open", self._opening)

    def _asking(self, name: str, natural: Any) -> Any:
        """Have the program find the files that it found the first time."""

        def asked(path: Any, *args: Any, **options: Any) -> bool:
            program = self._outside and is_of_program(sys._getframe(1))
            if not program or not isinstance(path, (str, Path)):
                return bool(natural(path, *args, **options))
            question = f"{name} {path}"
            if self.winding:
                at = self._asked[question] = self._asked.get(question, -1) + 1
                told = self.tape.answer(question, at)
                return bool(natural(path, *args, **options)) if told is None else told
            answer = bool(natural(path, *args, **options))
            self.tape.answered(question, answer)
            return answer

        return asked

    def _making(self, make: Any) -> Any:
        def made(path: Any, *args: Any, **options: Any) -> None:
            if not (self.winding and self._outside and Path(path).is_dir()):
                make(path, *args, **options)

        return made

    def _opening(self, opening: Any) -> Any:
        def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            named = isinstance(file, (str, Path))
            if self.winding and self._outside and mode == "wb" and named and Path(file).is_file():
                file = os.devnull
            return opening(file, mode, *args, **options)

        return opened


def _method(function: Any) -> Any:
    def method(tensor: Any, *args: Any, **options: Any) -> Any:
        return function(tensor, *args, **options)

    return method


def _shadow(value: Any) -> Any:
    """Return a tensor of an earlier call as if it came from this one."""
    if not isinstance(value, torch.Tensor):
        return value
    if not value.requires_grad:
        return value.detach().clone()
    return value.detach().requires_grad_().clone()


def _kind(tensor: Any) -> type:
    if tensor.is_complex():
        return complex
    return float if tensor.is_floating_point() else bool if tensor.dtype is torch.bool else int
