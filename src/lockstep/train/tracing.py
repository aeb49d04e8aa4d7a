"""A user's training script on tensors without data: how much memory its first steps would hold.

``python tracing.py STEPS RESULT SCRIPT [ARGUMENT ...]`` runs SCRIPT under FakeTensor, as one rank
of ``WORLD_SIZE`` with a process group that only pretends, and writes to RESULT what storages were
alive at the peak. Nothing is computed and nothing is allocated, so that a model of any size is
traced on a laptop. What needs values (``loss.item()``) gets a stand-in; what cannot do without is
named.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
import weakref
from typing import Any

from lockstep.train.state import Json


class Done(BaseException):
    """The steps that were asked for are traced."""


class Ledger:
    """Storages that are alive, in bytes, and the most that there were."""

    def __init__(self) -> None:
        self.alive: dict[int, int] = {}
        self.now = self.peak = 0
        self.at_peak: dict[int, int] = {}
        self.events: list[tuple[int, int]] = []
        """Number and bytes of each storage that came, number and 0 of each that went."""
        self._numbers: dict[int, int] = {}

    def note(self, tensor: Any) -> None:
        """Take note of the storage under *tensor*."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.alive:
            return
        size = int(storage.nbytes())
        self.alive[key] = size
        self._numbers[key] = len(self.events)
        self.events.append((len(self.events), size))
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.settle()
        self.now -= self.alive.pop(key, 0)
        self.events.append((self._numbers.pop(key, -1), 0))

    def settle(self) -> None:
        """Keep what is alive where that is the most that there was."""
        if self.now == self.peak:
            self.at_peak = dict(self.alive)


def _mode(ledger: Ledger) -> Any:
    import torch
    from torch.utils import _python_dispatch
    from torch.utils._pytree import tree_leaves

    base: Any = _python_dispatch.TorchDispatchMode

    class Watch(base):  # type: ignore[misc]
        """Notes what each operation returns."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            found = func(*args, **(kwargs or {}))
            for one in tree_leaves(found):
                if isinstance(one, torch.Tensor):
                    ledger.note(one)
            return found

    made: Any = Watch
    return made()


class Tracer:
    """Runs a script for some steps and sums up what it held."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done = steps, 0
        self.ledger = Ledger()
        self.optimizers: list[Any] = []
        self.stood_in: list[str] = []

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """Take note of an optimizer's step."""
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)
        if optimizer is self.optimizers[0]:
            self.done += 1
        if self.done >= self.steps:
            raise Done

    def result(self) -> Json:
        """Return bytes at the peak by what they are for."""
        self.ledger.settle()
        peak = self.ledger.at_peak
        parts = {"parameters": 0, "gradients": 0, "optimizer": 0}
        seen: set[int] = set()

        def add(name: str, tensor: Any) -> None:
            key = tensor.untyped_storage()._cdata
            if key in peak and key not in seen:
                seen.add(key)
                parts[name] += peak[key]

        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    add("parameters", parameter)
                    if parameter.grad is not None:
                        add("gradients", parameter.grad)
            for state in optimizer.state.values():
                for value in state.values():
                    if hasattr(value, "untyped_storage"):
                        add("optimizer", value)
        parts["activations"] = sum(peak.values()) - sum(parts.values())
        count = sum(p.numel() for o in self.optimizers for g in o.param_groups for p in g["params"])
        return {
            "peak": self.ledger.peak,
            "bytes": parts,
            "steps": self.done,
            "params": count,
            "stoodIn": len(self.stood_in),
            "events": self.ledger.events,
        }


def run(steps: int, script: list[str], *, fake: bool = True) -> Json:
    """Return what *script* would hold in its first *steps*; without *fake* it is computed."""
    from importlib import import_module

    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    tracer = Tracer(steps)
    optimizers = import_module("torch.optim.optimizer")
    optimizers.register_optimizer_step_post_hook(tracer.stepped)
    _pretend(torch)
    sys.argv = script
    sys.path.insert(0, os.path.dirname(os.path.abspath(script[0])))  # noqa: PTH100, PTH120
    modes = [FakeTensorMode(allow_non_fake_inputs=True)] if fake else []
    if fake:
        _stand_in(torch, tracer)
    try:
        for mode in modes:
            mode.__enter__()
        with _mode(tracer.ledger):
            runpy.run_path(script[0], run_name="__main__")
    except (Done, SystemExit):
        pass
    finally:
        for mode in modes:
            mode.__exit__(None, None, None)
    return tracer.result()


def _pretend(torch: Any) -> None:
    """Let the script be one rank of many without the others."""
    import torch.utils.data.dataloader as loaders

    begin = loaders.DataLoader.__init__

    def alone(self: Any, *arguments: Any, **options: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory"):
            options.pop(name, None)
        begin(self, *arguments, **options)

    loaders.DataLoader.__init__ = alone
    if not torch.distributed.is_available():
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore

    start = torch.distributed.init_process_group
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))

    def pretended(*_: Any, **__: Any) -> None:
        start("fake", store=FakeStore(), rank=rank, world_size=size)

    torch.distributed.init_process_group = pretended
    torch.distributed.distributed_c10d.init_process_group = pretended
    torch.nn.parallel.DistributedDataParallel = _replicated(torch)
    torch.nn.parallel.distributed.DistributedDataParallel = (
        torch.nn.parallel.DistributedDataParallel
    )


def _replicated(torch: Any) -> Any:
    class Replicated(torch.nn.Module):  # type: ignore[misc]
        """DistributedDataParallel as far as memory goes: buckets as large as the gradients."""

        def __init__(self, module: Any, *_: Any, **__: Any) -> None:
            super().__init__()
            self.module = module
            self.buckets = [torch.zeros_like(p) for p in module.parameters() if p.requires_grad]

        def forward(self, *arguments: Any, **options: Any) -> Any:
            return self.module(*arguments, **options)

        def no_sync(self) -> Any:
            import contextlib

            return contextlib.nullcontext()

    return Replicated


def _stand_in(torch: Any, tracer: Tracer) -> None:
    """Give values where the script asks for some: a loss of 1, a list of ones."""
    real = torch.Tensor.item

    def item(self: Any) -> Any:
        if not hasattr(self, "fake_mode"):
            return real(self)
        tracer.stood_in.append("item")
        return 1.0 if self.dtype.is_floating_point else 1

    torch.Tensor.item = item
    torch.Tensor.__float__ = lambda self: float(item(self))
    torch.Tensor.__format__ = lambda self, spec: format(
        item(self) if self.dim() == 0 else repr(self), spec
    )
    torch.Tensor.tolist = lambda self: [1] * (self.numel() if self.dim() else 1)
    torch.save = lambda *_, **__: None


def _named(error: BaseException) -> Json:
    """Return what cannot be traced, with the line of the script."""
    last = next(
        (
            f"{os.path.basename(one.filename)}:{one.lineno} {one.line}"  # noqa: PTH119
            for one in reversed(traceback.extract_tb(error.__traceback__))
            if "site-packages" not in one.filename and __file__ != one.filename
        ),
        "",
    )
    operator = str(getattr(error, "func", "") or "")
    return {"error": f"{type(error).__name__}: {error}"[:500], "operator": operator, "line": last}


def main(arguments: list[str]) -> None:
    """Trace, and write what was found, or why it cannot be."""
    steps, result, *script = arguments
    try:
        found = run(int(steps), script)
    except Exception as error:  # of the user's script or of an operator
        found = _named(error)
    with open(result, "w") as file:  # noqa: PTH123
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1:])
