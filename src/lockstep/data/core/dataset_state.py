"""What is seen of a dataset, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.dataset_cache import DatasetCache
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import (
    DataLoad,
    DataProcess,
    Dataset,
    DatasetStatus,
    OperationStatus,
    Runtime,
    RuntimeStatus,
)
from lockstep.runtime.actions import Action


@dataclass(frozen=True, slots=True)
class Carried:
    """A pod that carries an operation out."""

    name: str
    uid: str
    phase: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A dataset and all around it."""

    dataset: Dataset
    runtimes: Sequence[Runtime] = ()
    """Those of its name."""
    caches: Sequence[DatasetCache] = ()
    loads: Sequence[DataLoad] = ()
    processes: Sequence[DataProcess] = ()
    """Operations that are pods: those of users, and what DataMigrates and DataBackups become."""
    refused: Mapping[str, OperationStatus] = field(default_factory=dict)
    """Statuses of operations that cannot be carried out, by ``KIND/NAME``."""
    operations: Mapping[str, str] = field(default_factory=dict)
    """Phases of operations of the namespace, by ``KIND/NAME``."""
    pods: Mapping[str, Carried] = field(default_factory=dict)
    """Pods that carry operations out, by name."""
    owner: Dataset | None = None
    """The dataset that it stands for, where it stands for another."""
    owner_shares: Mapping[str, str] = field(default_factory=dict)
    """What nodes' labels say of how much of that one they have."""
    open_to_all: bool = False
    """Whether datasets that list no namespaces may be read from all of them."""
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of the nodes that can cache, by name."""
    places: Sequence[str] | None = None
    """Those of them that may cache the dataset, once that is known."""
    shares: Mapping[str, str] = field(default_factory=dict)
    """What nodes' labels say of how much of the dataset they have, by node."""
    readers: frozenset[str] = frozenset()
    """Nodes on which pods mount it."""
    jobs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By node the jobs of those pods; a pod without one stands for itself."""
    mounted_by: Sequence[str] = ()
    """Names of pods that mount it, wherever they are."""
    quota: str = ""
    """What its namespace says its datasets may take together on each node; empty is all."""
    new_token: str = ""
    """What to put into the Secret that the dataset's nodes show each other, if it is missing."""
    claim: Json | None = None
    volume: Json | None = None
    without: frozenset[str] = frozenset()
    """Nodes on which pods could run and that have no data cache."""


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
    processes: dict[str, Any] = field(default_factory=dict)
    """Status of each operation that is a pod, by ``KIND/NAME``."""
    again: float | None = None
    """In how many seconds to look again; none is when something changes."""
