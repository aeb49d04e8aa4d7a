"""All kinds of other systems that become jobs or queues of ours."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from lockstep.compat.translation import Source

TRANSLATED: Final[tuple[str, ...]] = (
    "coscheduling",
    "etoperator",
    "jupyter",
    "jobset",
    "kai",
    "kubeflow",
    "kubernetes",
    "kueue",
    "scheduling",
    "trainer",
    "volcano",
)
"""Dialects whose folder has a module ``sources`` with a tuple ``SOURCES`` of :class:`Source`."""


def sources() -> list[Source]:
    """Return every kind that is served."""
    return [
        source
        for name in TRANSLATED
        for source in import_module(f"lockstep.compat.{name}.sources").SOURCES
    ]
