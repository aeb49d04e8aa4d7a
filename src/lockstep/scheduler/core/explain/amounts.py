"""Amounts of accounts in words."""

from __future__ import annotations

from lockstep.api.names import GPU
from lockstep.scheduler.core.quota.guarantee import MODEL_PREFIX
from lockstep.scheduler.core.resources import wording


def amount(resource: str, value: int) -> str:
    """Return an amount of an account in words: ``1.5 GPUs``, ``8 H100 GPUs``, ``16Gi memory``."""
    if resource == GPU or resource.startswith(MODEL_PREFIX):
        model = resource.removeprefix(MODEL_PREFIX) + " " if resource != GPU else ""
        return f"{value / 1000:g} {model}GPU{'' if value == 1000 else 's'}"
    return wording.quantity(resource, value)
