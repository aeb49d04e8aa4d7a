"""Which dialects Lockstep understands, each a folder beside this file.

A dialect's folder has a module ``kinds`` with a tuple ``KINDS`` of :class:`ForeignKind`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final

from lockstep.api.wire import Json

DIALECTS: Final[tuple[str, ...]] = (
    "argo",
    "coscheduling",
    "etoperator",
    "fluid",
    "jobset",
    "jupyter",
    "kai",
    "kfp",
    "kserve",
    "kubeflow",
    "kueue",
    "leaderworkerset",
    "scheduling",
    "trainer",
    "volcano",
)
"""Names of the dialects whose kinds Lockstep can install, in alphabetical order."""
EMBEDDED: Final = ("scheduling",)
"""Those of which clusters serve the kinds themselves: ``all`` leaves them out."""


def parse(names: str) -> tuple[str, ...]:
    """Return the dialects that *names* asks for: ``all``, or names separated by commas.

    Raises:
        ValueError: when one of them is unknown; the message names those there are.
    """
    if names == "all":
        return tuple(name for name in DIALECTS if name not in EMBEDDED)
    wanted = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in wanted:
        if name not in DIALECTS:
            raise ValueError(f"unknown dialect {name!r}; there are: {', '.join(DIALECTS)}")
    return wanted


def manifests(names: Iterable[str]) -> list[Json]:
    """Return the CRDs of the dialects called *names*, as plain objects."""
    built: list[Json] = []
    for name in names:
        module = import_module(f"lockstep.compat.{name}.kinds")
        built += [kind.manifest(name) for kind in module.KINDS]
    return built
