"""Why a workload waits before any node is looked at: something about itself is missing."""

from __future__ import annotations

from difflib import get_close_matches

from lockstep.api import checkpoint, queue_access
from lockstep.api.creator_policy import creator_of
from lockstep.api.names import HELD_ANNOTATION
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.pod_groups import PodGroup
from lockstep.scheduler.core.model.workload import DEFAULT_QUEUE, Member, Workload
from lockstep.scheduler.core.ranks.rank_bundles import torn
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.resources.alignment import RELATIONS
from lockstep.scheduler.core.state.cluster import Cluster


def unmet_precondition(cluster: Cluster, workload: Workload) -> Verdict | None:
    """Return what keeps the workload from being considered at all; None when nothing does."""
    if workload.is_gang and workload.gang is None:
        return Verdict(
            "GangMissing",
            f"Gang {workload.key.namespace}/{workload.key.name} does not exist and "
            f"{wording.count(len(workload.members), 'pod')} waits for it; create it, or remove the "
            "label lockstep.dev/gang to place the pods one by one",
        )
    if workload.unreadable:
        return Verdict("BadSelector", workload.unreadable)
    return (
        _no_queue(cluster, workload)
        or _not_allowed(cluster, workload)
        or _held(workload)
        or _missing(workload)
        or _unknown_tier(cluster, workload)
        or _torn(cluster, workload)
        or _odd(workload)
    )


def _no_queue(cluster: Cluster, workload: Workload) -> Verdict | None:
    """Return that a workload names a queue that does not exist: there it would pass every limit.

    Where there is no queue at all, nothing is limited and the names do not matter.
    """
    known = cluster.ledger.specs
    if not known or workload.queue in known or workload.queue == DEFAULT_QUEUE:
        return None
    # A guess at names of queues tells none of others.
    meant = get_close_matches(
        workload.queue,
        [one for one in sorted({*known, DEFAULT_QUEUE}) if _lets(cluster, workload, one)],
        n=1,
    )
    question = f"; did you mean {meant[0]}?" if meant else ""
    return Verdict(
        "QueueMissing",
        f"queue {workload.queue} does not exist{question}",
        f"a queue of that name (lockstep queue create {workload.queue}), or another queue "
        "in the job",
    )


def _not_allowed(cluster: Cluster, workload: Workload) -> Verdict | None:
    """Return that a workload waits in a queue that its namespace may not use.

    A user and groups that the queue names count where the API server has put them on record.
    """
    if not cluster.namespaces or workload.bound:
        return None
    rule = queue_access.rule_of(workload.queue, cluster.ledger.specs)
    if rule is None or _lets(cluster, workload, workload.queue):
        return None
    return Verdict(
        "QueueForbidden",
        queue_access.refusal(workload.queue, workload.key.namespace),
        queue_access.remedy(workload.queue, rule),
    )


def _lets(cluster: Cluster, workload: Workload, queue: str) -> bool:
    """Return whether a workload may use a queue, by its namespace or by its creator."""
    rule, space = queue_access.rule_of(queue, cluster.ledger.specs), workload.key.namespace
    if rule is None or rule.lets(space, cluster.namespaces.get(space, {})):
        return True
    user, groups = creator_of(workload.told_of_creator)
    return bool(user) and rule.names(user, groups)


def _held(workload: Workload) -> Verdict | None:
    """Return why a gang is held by its annotation; one that has started goes on."""
    gang = workload.gang
    said = gang.metadata.annotations.get(HELD_ANNOTATION, "") if gang is not None else ""
    if not said or workload.bound:
        return None
    return Verdict("Held", said)


def _missing(workload: Workload) -> Verdict | None:
    short = [pod_group for pod_group in workload.pod_groups if pod_group.missing]
    if not short:
        return None
    gates = sorted({gate for m in short for member in m.gated for gate in member.gates})
    if not workload.is_gang:
        return Verdict("Gated", f"held back by {_gates(gates, 'scheduling gates')}")
    parts = [_has(pod_group) for pod_group in short]
    if gates and all(len(m.gated) >= m.missing for m in short):
        return Verdict(
            "Gated",
            f"{wording.listing(parts)}; {_gates(gates, 'scheduling gates hold pods back')}",
        )
    strays = f"; {_strays(workload)}" if workload.strays else ""
    return Verdict("MembersMissing", f"{wording.listing(parts)}{strays}")


def _gates(gates: list[str], lead: str) -> str:
    """Return gates in words; what claims want is a sentence, and no gate of the pod's own."""
    claims = [one for one in gates if " " in one]
    own = [one for one in gates if " " not in one]
    parts = [f"{lead}: {', '.join(own)}"] if own else []
    return "; ".join([*parts, *(f"device claims: {one}" for one in claims)])


def passed_over(workload: Workload, member: Member) -> Verdict | None:
    """Return why a pod is not among those that are placed with its gang; None where it is."""
    if member in workload.strays:
        return Verdict("NoGroup", _strays(workload))
    for pod_group in workload.pod_groups:
        if member in pod_group.pending and not pod_group.want:
            name = f"group {pod_group.group.name}" if pod_group.group.name else "the gang"
            wanted = wording.count(pod_group.group.desired or 0, "pod")
            return Verdict("Surplus", f"{name} wants {wanted} and has them")
    return None


def _strays(workload: Workload) -> str:
    names = ", ".join(member.name for member in workload.strays[:3])
    groups = ", ".join(pod_group.group.name for pod_group in workload.pod_groups)
    return (
        f"{wording.count(len(workload.strays), 'pod')} of the gang in none of its "
        f"groups ({names}): the label lockstep.dev/gang-group must name one of {groups}"
    )


def _has(pod_group: PodGroup[Member]) -> str:
    held = f" ({len(pod_group.gated)} of them gated)" if pod_group.gated else ""
    whose = f"group {pod_group.group.name} " if pod_group.group.name else ""
    return f"{whose}has {pod_group.total} of {wording.count(pod_group.group.minimum, 'pod')}{held}"


def _unknown_tier(cluster: Cluster, workload: Workload) -> Verdict | None:
    tiers = cluster.table.tiers
    wishes = [workload.wish, *(pod_group.group.wish for pod_group in workload.pod_groups)]
    for wish in wishes:
        if wish.required and tiers.level(wish.required) is None:
            return Verdict(
                "UnknownTier",
                f"requires the tier {wish.required}, which the Topology does not have; "
                f"its tiers are {', '.join(tiers.names)}",
            )
    return None


def _torn(cluster: Cluster, workload: Workload) -> Verdict | None:
    why = torn(workload, across=cluster.table.tiers.nvlink is not None)
    return Verdict("TensorGroupTorn", why, "pods of a tensor group that are alike") if why else None


def _odd(workload: Workload) -> Verdict | None:
    """Return what is wrong with how a pod asks for devices."""
    return _mixed(workload) or _misaligned(workload)


def _mixed(workload: Workload) -> Verdict | None:
    mixed = next((m for m in workload.pending if m.shape.share is not None and m.shape.gpus), None)
    if mixed is None:
        return None
    return Verdict(
        "MixedGpus",
        f"pod {mixed.name} asks for whole GPUs and for a share of others",
        "either whole GPUs or shares in one pod",
    )


def _misaligned(workload: Workload) -> Verdict | None:
    odd = next((m for m in workload.pending if m.shape.alignment.unknown), None)
    if odd is None:
        return None
    unknown = ", ".join(odd.shape.alignment.unknown)
    return Verdict(
        "BadAlignment",
        f"pod {odd.name} asks for its devices to be aligned by {unknown}; "
        f"there are {wording.listing(RELATIONS)}",
    )


def warnings(cluster: Cluster, workload: Workload) -> list[Verdict]:
    """Return what is odd about a gang and yet does not keep it from starting."""
    gang = workload.gang
    if gang is None:
        return []
    found = []
    named = gang.spec.priority_class_name
    if named and named not in cluster.priorities:
        found.append(
            Verdict(
                "PriorityClassMissing",
                f"PriorityClass {named} does not exist; the pods' own priority counts",
            )
        )
    if workload.node_policy and workload.node_policy not in cluster.policies:
        found.append(
            Verdict(
                "NodePolicyMissing",
                f"NodePolicy {workload.node_policy} does not exist; no nodes are filled first",
            )
        )
    if odd := checkpoint.unreadable(gang.metadata.annotations, gang.status.last_checkpoint):
        found.append(Verdict("CheckpointUnreadable", odd))
    preferred = workload.wish.preferred
    if preferred and cluster.table.tiers.level(preferred) is None:
        tiers = ", ".join(cluster.table.tiers.names)
        found.append(
            Verdict("UnknownTier", f"no tier {preferred} to prefer; the tiers are {tiers}")
        )
    return found
