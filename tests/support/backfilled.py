"""Gangs with known run times and queues with limits."""

from __future__ import annotations

from typing import Any


def runs(seconds: float | None) -> dict[str, Any]:
    return {"annotations": {"lockstep.dev/runtime": str(seconds)}} if seconds is not None else {}


def at_most(gpus: int, **more: Any) -> dict[str, Any]:
    return {"limit": {"nvidia.com/gpu": gpus}, **more}
