"""Puts the probes into torch as it is imported; programs without torch never notice them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from typing import Any

from . import experiment
from .loading import watch_fetches, watch_loader
from .steps import Steps, watch_saves
from .totals import Totals


def install() -> None:
    """Have what is of interest in torch measured from its import on."""
    totals = Totals()
    steps = Steps(totals)

    def optimizer(module: Any) -> None:
        module.register_optimizer_step_post_hook(steps.hook)

    def serialization(module: Any) -> None:
        experiment.alter(module)
        watch_saves(module, totals)

    wanted: dict[str, Callable[[Any], None]] = {
        "torch.optim.optimizer": optimizer,
        "torch.serialization": serialization,
        "torch.utils.data.dataloader": lambda module: watch_loader(module, totals),
        "torch.utils.data._utils.fetch": lambda module: watch_fetches(module, totals),
        "torch.distributed.distributed_c10d": experiment.without_metrics,
    }
    experiment.quiet()
    # A rank that was forked has imported them before.
    for name in [name for name in wanted if name in sys.modules]:
        wanted.pop(name)(sys.modules[name])
    if wanted:
        sys.meta_path.insert(0, _Finder(wanted))


class _Finder(MetaPathFinder):
    """Finds the modules that are wanted, and calls what belongs to each once it is loaded."""

    def __init__(self, wanted: dict[str, Callable[[Any], None]]) -> None:
        self._wanted = wanted

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec that others find of a wanted module, with a loader that calls."""
        if name not in self._wanted:
            return None
        then = self._wanted.pop(name)
        if not self._wanted:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Calling(spec.loader, then)
                return spec
        return None


class _Calling(Loader):
    """A loader that calls a function with the module that it has loaded."""

    def __init__(self, loader: Any, then: Callable[[Any], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: Any) -> Any:
        """Make the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Load it, then call."""
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        module.__spec__.loader = self._loader
        self._then(module)
