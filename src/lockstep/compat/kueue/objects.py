"""Kueue's queues, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.compat.translation import Strict

Amount = str | int | float
Empty = Annotated[dict[str, str], Meta(max_length=0)]


class Resource(Strict, frozen=True):
    """How much of a resource there is in one flavor."""

    name: str
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    lending_limit: Amount | None = None


class Flavor(Strict, frozen=True):
    """Quota in one flavor; what a job may use is the sum over all."""

    name: str
    resources: list[Resource] = []


class ResourceGroup(Strict, frozen=True):
    """Resources that have the same flavors."""

    covered_resources: list[str] = []
    flavors: list[Flavor] = []


class BorrowWithin(Strict, frozen=True):
    """Who is taken away for one that borrows: no one."""

    policy: Literal["Never", ""] = "Never"


class Preemption(Strict, frozen=True):
    """Who is taken away; what is guaranteed is always given back."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority", ""] = ""
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any", ""] = ""
    borrow_within_cohort: BorrowWithin | None = None


class FairSharing(Strict, frozen=True):
    """Its weight among its siblings."""

    weight: Amount = 1


class Fungibility(Strict, frozen=True):
    """When the next flavor is tried: quota is summed over flavors, so that there is no next."""

    when_can_borrow: str = ""
    when_can_preempt: str = ""


class NamespaceSelector(Strict, frozen=True):
    """All namespaces."""

    match_labels: Empty | None = None


class ClusterQueueSpec(Strict, frozen=True):
    """What a ClusterQueue says."""

    resource_groups: list[ResourceGroup] = []
    cohort: str = ""
    cohort_name: str = ""
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO", ""] = ""
    namespace_selector: NamespaceSelector | None = None
    preemption: Preemption | None = None
    fair_sharing: FairSharing | None = None
    flavor_fungibility: Fungibility | None = None
    stop_policy: Literal["None", ""] = ""


class CohortSpec(Strict, frozen=True):
    """What a Cohort says."""

    parent: str = ""
    parent_name: str = ""
    resource_groups: list[ResourceGroup] = []
    fair_sharing: FairSharing | None = None


class LocalQueueSpec(Strict, frozen=True):
    """What a LocalQueue says."""

    cluster_queue: Annotated[str, Meta(min_length=1)]
    fair_sharing: FairSharing | None = None
    stop_policy: Literal["None", ""] = ""


class ResourceFlavorSpec(Strict, frozen=True):
    """What a ResourceFlavor says: nothing that tells its nodes from others."""

    node_labels: Empty | None = None
