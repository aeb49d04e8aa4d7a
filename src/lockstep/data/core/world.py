"""What is seen of a dataset, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.dataset_cache import DatasetCache
from lockstep.api.resource import Resource
from lockstep.compat.fluid.objects import DataLoad, Dataset, DatasetStatus, Runtime, RuntimeStatus

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A dataset and all around it."""

    dataset: Dataset
    runtimes: Sequence[Runtime] = ()
    """Those of its name."""
    caches: Sequence[DatasetCache] = ()
    loads: Sequence[DataLoad] = ()
    nodes: Sequence[str] = ()
    """Nodes that can cache, by name."""
    readers: frozenset[str] = frozenset()
    """Nodes on which pods mount it."""
    mounted_by: Sequence[str] = ()
    """Names of pods that mount it, wherever they are."""
    new_token: str = ""
    """What to put into the Secret that the dataset's nodes show each other, if it is missing."""
    claim: Json | None = None
    volume: Json | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object; one that is there already is as good."""

    resource: Resource[Any]
    body: Json
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Change an object."""

    resource: Resource[Any]
    name: str
    namespace: str
    patch: Json
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object, if it is still the one of that uid."""

    resource: Resource[Any]
    name: str
    namespace: str
    uid: str


Action = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do for a dataset, and what to say of it."""

    actions: Sequence[Action] = ()
    status: DatasetStatus | None = None
    runtime_status: RuntimeStatus | None = None
    remark: tuple[str, str] | None = None
    """Reason and message of an Event."""
    loads: dict[str, Any] = field(default_factory=dict)
    """Status of each DataLoad, by name."""
