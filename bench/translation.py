"""How long a manifest of another system takes to become objects of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench.figure import Figure
from lockstep.api.core import AnyObject
from lockstep.api.wire import convert
from lockstep.compat.registry import sources
from lockstep.compat.translation import Source, Translation

LIMIT = 5.0
RUNS = 200
SAMPLES = Path(__file__).parents[1] / "tests" / "unit" / "compat" / "samples"


def run() -> list[Figure]:
    known = {(s.kind.group, s.kind.kind): s for s in sources()}
    figures = []
    for path in sorted(SAMPLES.glob("*.yaml")):
        if path.name.endswith(".native.yaml"):
            continue
        text = path.read_text()
        body = yaml.safe_load(text)
        source = known[body["apiVersion"].partition("/")[0], body["kind"]]
        took = _milliseconds(partial(_translate, source, body))
        loaded = _milliseconds(partial(yaml.safe_load, text))
        name = f"translation of {path.stem}"
        figures.append(Figure(name, took, "ms", "lower", LIMIT).beside("yaml.safe_load", loaded))
    return figures


def _translate(source: Source, body: dict[str, Any]) -> Translation:
    return source.to_native(convert(body, AnyObject))


def _milliseconds(call: Callable[[], object]) -> float:
    """Return the middle of the times that *call* takes."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)[RUNS // 2]
