"""Where the main thread is, looked up many times a second: phase of the step and line of code."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
import threading
import time
from typing import Any

from .totals import Totals

EVERY = 0.05
"""Seconds between two looks: a look takes about 50 µs."""
_LONGEST = 160
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_DEEPEST = 120

_LIBRARIES: tuple[str, ...] = tuple(
    {os.path.abspath(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib", "platlib")}  # noqa: PTH100
)
_PHASES = (
    ("input", re.compile(r"torch/utils/data/|/webdataset/|/datasets/iterable|nvidia/dali")),
    (
        "checkpoint",
        re.compile(
            r"torch/serialization\.py|torch/distributed/checkpoint/|/safetensors/"
            r"|lockstep/train/checkpointer|save_file"
        ),
    ),
    (
        "logging",
        re.compile(
            r"/logging/(__init__|handlers)\.py|/wandb/|/tensorboard|/mlflow/|/comet_ml/|/neptune/"
            r"|/tqdm/|/http/client\.py|/urllib/request\.py|/requests/|/urllib3/|/httpx/|/csv\.py"
        ),
    ),
    ("metrics", re.compile(r"/torchmetrics/|/sklearn/|/scipy/|/ignite/metrics|/evaluate/")),
    ("backward", re.compile(r"torch/autograd/")),
    ("collective", re.compile(r"torch/distributed/distributed_c10d\.py")),
    ("optimizer", re.compile(r"torch/optim/")),
)
_WORDS = (
    ("logging", re.compile(r"\bprint\(|\.write\(|\.flush\(|log(ger)?\.\w+\(|\.fsync\(")),
    ("sync", re.compile(r"\.item\(\)|\.tolist\(\)|\.cpu\(\)|\.numpy\(\)|nonzero\(|synchronize\(")),
    ("copy", re.compile(r"\.cuda\(|\.to\(")),
)


def phase_of(files: list[str], code: str) -> str:
    """Return what a thread does whose frames lie in *files*, outermost first, at *code*.

    *code* is the user's line. Of several phases the outermost holds: a log written while a batch
    is loaded is loading. Where no library tells, the words of the line do.
    """
    for file in files:
        for name, pattern in _PHASES:
            if pattern.search(file):
                return name
    for name, pattern in _WORDS:
        if pattern.search(code):
            return name
    return "compute"


def look(frame: Any) -> tuple[str, str]:
    """Return the phase of a thread at *frame*, and the innermost line of the user's own code."""
    files: list[str] = []
    own: tuple[str, int] | None = None
    while frame is not None and len(files) < _DEEPEST:
        file = frame.f_code.co_filename
        files.append(file)
        if own is None and not file.startswith(("<", *_LIBRARIES)) and not file.startswith(_HERE):
            own = (file, frame.f_lineno or 0)  # a frame may be between two lines
        frame = frame.f_back
    if own is None:
        return phase_of(files[::-1], ""), ""
    code = linecache.getline(*own).strip()
    line = f"{os.path.basename(own[0])}:{own[1]} {code}"[:_LONGEST]  # noqa: PTH119
    return phase_of(files[::-1], code), line


class Sampler:
    """Looks at the thread that made it until the process ends."""

    def __init__(self, totals: Totals) -> None:
        self._totals, self._thread = totals, threading.get_ident()
        self.busy: Any = lambda: True
        threading.Thread(target=self._run, name="lockstep-probe", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(EVERY)
            if not self.busy():
                continue
            frame = sys._current_frames().get(self._thread)
            if frame is None:
                return
            self._totals.note(*look(frame))
            del frame
