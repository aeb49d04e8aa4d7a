"""What a node's DeviceUsage says, and when it is worth writing anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockstep.api.device_usage import GpuUsage
from lockstep.devices.core.exposition import Shown
from lockstep.devices.core.model import Card

STEPS = {"memory_used": 64, "utilization": 2, "power": 10, "temperature": 2}
"""Differences below which two readings count as the same."""


def usage(cards: Sequence[Card], shown: Sequence[Shown]) -> list[GpuUsage]:
    """Return the node's GPUs with what each does now."""
    by_index = {one.card.index: one for one in shown}
    return [
        _one(card, by_index.get(card.index))
        for card in cards
        if card.resource == "nvidia.com/gpu" and not card.mig
    ]


def _one(card: Card, shown: Shown | None) -> GpuUsage:
    values: Mapping[str, float] = shown.values if shown else {}
    holders = shown.holders if shown else ()
    return GpuUsage(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory=card.memory,
        memory_used=round(values.get("memory_used", 0)),
        utilization=round(values.get("utilization", 0)),
        sm_active=_percent(values, "prof_sm"),
        tensor_active=_percent(values, "prof_tensor"),
        power=round(values.get("power", 0)),
        temperature=round(values.get("temperature", 0)),
        pods=sorted({f"{one.namespace}/{one.pod}" for one in holders}),
        trouble=card.trouble,
    )


def _percent(values: Mapping[str, float], key: str) -> int | None:
    return round(values[key] * 100) if key in values else None


def differs(one: Sequence[GpuUsage], other: Sequence[GpuUsage]) -> bool:
    """Tell whether two statements differ by more than a trifle."""
    if len(one) != len(other):
        return True
    return any(_differ(a, b) for a, b in zip(one, other, strict=True))


def _differ(a: GpuUsage, b: GpuUsage) -> bool:
    if (a.uuid, a.index, a.pods, a.trouble) != (b.uuid, b.index, b.pods, b.trouble):
        return True
    if any(abs(getattr(a, key) - getattr(b, key)) >= step for key, step in STEPS.items()):
        return True
    return any(
        abs((getattr(a, key) or 0) - (getattr(b, key) or 0)) >= STEPS["utilization"]
        for key in ("sm_active", "tensor_active")
    )
