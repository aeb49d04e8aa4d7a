"""Copies of what an optimizer owns, made beside the next step's forward and backward passes.

Parameters and what an optimizer keeps for them change in its ``step`` alone. So their copy need not
hold the program up: it goes on until an optimizer steps again, which waits for it. Everything else
is copied at once. Whether a tensor was changed meanwhile all the same is seen from its version:
then the copy does not count, and from then on all is copied at once.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from lockstep.train import shards

Pairs = Sequence[tuple[Tensor, Tensor]]
"""Where to, and what."""

LEAST_BYTES = 8 << 20
"""Below that a copy takes less time than a thread."""


def owned(parts: Iterable[Any]) -> set[int]:
    """Return where the tensors lie that optimizers among *parts* alone change."""
    found: set[int] = set()
    for part in parts:
        if isinstance(part, torch.optim.Optimizer):
            for group in part.param_groups:
                found |= {address(one) for one in group["params"]}
            for kept in part.state.values():
                found |= {address(one) for one in kept.values() if torch.is_tensor(one)}
    return found - {0}


def shareable(parts: Iterable[Any]) -> set[int]:
    """Return where the tensors lie that data parallelism keeps alike in all ranks."""
    parts = list(parts)
    modules = [part for part in parts if isinstance(part, torch.nn.Module)]
    return owned(parts) | {address(one) for part in modules for one in part.parameters()} - {0}


def address(tensor: Tensor) -> int:
    """Return where the values lie that this rank holds of *tensor*."""
    found: int = shards.local(tensor.detach()).data_ptr()
    return found


class Copier:
    """Makes one copy at a time in a thread, and a GPU's in a stream."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stream: Any = None
        self.at_once = False
        """Whether everything is copied at once from now on."""
        register_optimizer_step_pre_hook(lambda *_: self.wait())
        atexit.register(self.wait)

    def split(self, pairs: Pairs, free: set[int]) -> tuple[Pairs, Pairs]:
        """Return those that are copied at once, and those that may be copied later."""
        later = [] if self.at_once else [one for one in pairs if one[1].data_ptr() in free]
        if sum(source.nbytes for _, source in later) < LEAST_BYTES:
            return pairs, []
        which = {id(source) for _, source in later}
        return [one for one in pairs if id(one[1]) not in which], later

    def start(self, pairs: Pairs, done: Callable[[], None]) -> None:
        """Copy *pairs* beside what follows, and call *done* once all is there unchanged."""
        self.wait()
        versions = [source._version for _, source in pairs]
        event = self._on_gpu(pairs)

        def copy() -> None:
            if event is not None:
                event.synchronize()
            with torch.no_grad():
                for target, source in pairs:
                    if not source.is_cuda:
                        target.copy_(source)
            if [source._version for _, source in pairs] == versions:
                done()
            else:
                self._changed()

        self._thread = threading.Thread(target=copy, name="lockstep-copy", daemon=True)
        self._thread.start()

    def _on_gpu(self, pairs: Pairs) -> Any:
        """Queue the copies from a GPU behind all that it does now; return what tells their end."""
        sources = [one for one in pairs if one[1].is_cuda]
        if not sources:
            return None
        if self._stream is None:
            self._stream = torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream), torch.no_grad():
            for target, source in sources:
                target.copy_(source, non_blocking=True)
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def _changed(self) -> None:
        self.at_once = True
        sys.stderr.write(
            "lockstep: parameters are changed outside of optimizer.step: each step waits for its "
            "copy from now on\n"
        )

    def wait(self) -> None:
        """Return once no copy is under way."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None


def pin(address: int, size: int) -> bool:
    """Have a GPU copy straight into the memory at *address*; say whether it will."""
    code = torch.cuda.cudart().cudaHostRegister(address, size, 0)
    return int(code) == 0
