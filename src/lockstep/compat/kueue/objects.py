"""Kueue's queues, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.compat.translation import Strict

Amount = str | int | float
StopPolicy = Literal["None", "Hold", "HoldAndDrain", ""]
"""Whether new jobs, or those that run as well, are kept out."""


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
    """Who is taken away for one that borrows: no one, as the condition of the queue says."""

    policy: Literal["Never", "LowerPriority", ""] = "Never"
    max_priority_threshold: int | None = None


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


class Expression(Strict, frozen=True):
    """One requirement of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []


class NamespaceSelector(Strict, frozen=True):
    """Labels of the namespaces whose workloads may use the queue; without any, all."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Expression] = []


class CheckRule(Strict, frozen=True):
    """A check that jobs of some flavors, or of all, must pass."""

    name: str
    on_flavors: list[str] = []


class Checks(Strict, frozen=True):
    """Checks that jobs must pass."""

    admission_checks: list[CheckRule] = []


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
    stop_policy: StopPolicy = ""
    admission_checks: list[str] = []
    admission_checks_strategy: Checks | None = None


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
    stop_policy: StopPolicy = ""


class Taint(Strict, frozen=True):
    """A taint of the flavor's nodes: its jobs must tolerate it themselves."""

    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class Toleration(Strict, frozen=True):
    """What each pod of the flavor tolerates."""

    key: str = ""
    operator: Literal["Equal", "Exists", ""] = ""
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: int | None = None


class ResourceFlavorSpec(Strict, frozen=True):
    """What a ResourceFlavor says: which nodes it is of, and what their pods tolerate."""

    topology_name: str = ""
    node_labels: dict[str, str] = {}
    node_taints: list[Taint] = []
    tolerations: list[Toleration] = []


class Level(Strict, frozen=True):
    """One level of the network: nodes with the same value of a label."""

    node_label: str


class TopologySpec(Strict, frozen=True):
    """What a Topology says: its levels, widest first."""

    levels: Annotated[list[Level], Meta(min_length=1, max_length=16)]
