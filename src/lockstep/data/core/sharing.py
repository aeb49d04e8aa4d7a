"""Datasets that stand for a dataset of another namespace: ``dataset://NAMESPACE/NAME``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.compat.fluid.objects import Dataset

SCHEME: Final = "dataset://"
SHARED_WITH: Final = "data.lockstep.dev/shared-with"
"""Annotation of a dataset: namespaces that may read it, separated by commas; ``*`` is all."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a dataset stands for."""

    namespace: str
    name: str
    path: str = ""
    """Directory in it that is shown; empty is all of it."""


class Unreadable(Exception):
    """A reference that names no dataset: field, value and remedy."""


def reference(dataset: Dataset) -> Reference | None:
    """Return the dataset that *dataset* stands for; none for one with sources of its own.

    Raises:
        Unreadable: when it names none, or stands beside sources.
    """
    points = [one.mount_point for one in dataset.spec.mounts]
    if not any(one.startswith(SCHEME) for one in points):
        return None
    if len(points) > 1:
        raise Unreadable("spec.mounts has more than one part: dataset:// stands alone")
    namespace, _, rest = points[0].removeprefix(SCHEME).partition("/")
    name, _, path = rest.partition("/")
    if not namespace or not name or ".." in path.split("/"):
        raise Unreadable(
            f"spec.mounts[0].mountPoint is {points[0]!r}: write dataset://NAMESPACE/NAME"
        )
    return Reference(namespace, name, path.strip("/"))


def refers_to(dataset: Dataset) -> list[str]:
    """Return ``NAMESPACE/NAME`` of the dataset that *dataset* stands for, for an index."""
    try:
        found = reference(dataset)
    except Unreadable:
        return []
    return [] if found is None else [f"{found.namespace}/{found.name}"]


def may_read(owner: Dataset, namespace: str, *, open_to_all: bool) -> bool:
    """Tell whether *namespace* may read *owner*; *open_to_all* is what holds without a list."""
    listed = owner.metadata.annotations.get(SHARED_WITH)
    if listed is None:
        return open_to_all or namespace == owner.metadata.namespace
    names = [one.strip() for one in listed.split(",")]
    return "*" in names or namespace in (*names, owner.metadata.namespace)
