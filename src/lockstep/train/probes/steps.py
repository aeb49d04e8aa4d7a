"""The steps: told apart by the optimizer, and a few of them looked at with torch's profiler."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from . import experiment, profiling
from .machine import Cpu
from .sampling import Sampler
from .totals import Sheet, Totals

WARM = 3
"""Steps that are left out: compilation, caches, the first batch."""
PROFILED = (8, 4)
"""After how many steps the profiler looks, and for how many."""
TELL_EVERY = 2.0


class Steps:
    """Follows the optimizer's steps of this rank."""

    def __init__(self, totals: Totals) -> None:
        self._totals, self._which, self._last = totals, 0, 0.0
        self._done = 0
        self._profiling = False
        self._pid = os.getpid()

    def hook(self, optimizer: Any, *_: Any) -> None:
        """Take note of a step; with several optimizers those of the first count."""
        if not self._which:
            self._which = id(optimizer)
        if id(optimizer) != self._which or os.getpid() != self._pid:
            return
        now = time.monotonic()
        self._done += 1
        if self._done == WARM:
            self._totals.reset()
            Sampler(self._totals)
            sheet = Sheet(os.environ["LOCKSTEP_PROBES"], self._totals, "main")
            threading.Thread(target=self._tell, args=(sheet,), daemon=True).start()
        elif self._done > WARM:
            # What the window of the profiler costs is no part of a step.
            if not self._profiling:
                self._totals.steps.append(now - self._last)
            self._totals.add("steps", 1)
            self._totals.facts["step"] = self._done
        self._last = now
        self._look()
        if experiment.INSIDE and self._done >= experiment.STEPS:
            Sheet(os.environ["LOCKSTEP_PROBES"], self._totals, "main").write()
            experiment.finish(self._done)

    def _tell(self, sheet: Sheet) -> None:
        cpu, facts = Cpu(), self._totals.facts
        facts["cores"] = cpu.cores()
        while True:
            time.sleep(TELL_EVERY)
            facts["throttled"] = cpu.throttled()
            sheet.write()

    def _look(self) -> None:
        first, count = PROFILED
        begun = time.monotonic()
        if self._done == WARM + first:
            self._profiling = profiling.start()
        elif self._done == WARM + first + count and self._profiling:
            self._profiling = False
            self._totals.facts["profile"] = profiling.stop(count)
        else:
            return
        self._last = time.monotonic()
        # Neither does the window look slow for it.
        self._totals.add("profiling", self._last - begun)


def watch_saves(module: Any, totals: Totals) -> None:
    """Measure ``torch.save``."""
    save = module.save

    def saved(obj: Any, f: Any, *more: Any, **options: Any) -> Any:
        begun = time.monotonic()
        try:
            return save(obj, f, *more, **options)
        finally:
            totals.add("save.seconds", time.monotonic() - begun)
            totals.add("save.count", 1)

    module.save = saved
