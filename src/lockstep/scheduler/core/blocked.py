"""Why a unit waits before any node is looked at: something about itself is missing."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api import checkpoint
from lockstep.scheduler.core import words
from lockstep.scheduler.core.alignment import RELATIONS
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.musters import Muster
from lockstep.scheduler.core.roll import torn
from lockstep.scheduler.core.units import DEFAULT_QUEUE, Member, Unit


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a unit waits: one word for programs, and words and numbers for people."""

    reason: str
    message: str
    remedy: str = ""
    """What would change it, where the message does not say so itself."""


def blocked(cluster: Cluster, unit: Unit) -> Verdict | None:
    """Return what keeps the unit from being considered at all; None when nothing does."""
    if unit.is_gang and unit.gang is None:
        return Verdict(
            "GangMissing",
            f"Gang {unit.key.namespace}/{unit.key.name} does not exist and "
            f"{words.count(len(unit.members), 'pod')} waits for it; create it, or remove the label "
            "lockstep.dev/gang to place the pods one by one",
        )
    if unit.unreadable:
        return Verdict("BadSelector", unit.unreadable)
    return _missing(unit) or _unknown_tier(cluster, unit) or _torn(cluster, unit) or _odd(unit)


def _missing(unit: Unit) -> Verdict | None:
    short = [muster for muster in unit.musters if muster.missing]
    if not short:
        return None
    gates = sorted({gate for m in short for member in m.gated for gate in member.gates})
    if not unit.is_gang:
        return Verdict("Gated", f"held back by scheduling gates: {', '.join(gates)}")
    parts = [_has(muster) for muster in short]
    if gates and all(len(m.gated) >= m.missing for m in short):
        return Verdict(
            "Gated", f"{words.listing(parts)}; scheduling gates hold pods back: {', '.join(gates)}"
        )
    strays = f"; {_strays(unit)}" if unit.strays else ""
    return Verdict("MembersMissing", f"{words.listing(parts)}{strays}")


def passed_over(unit: Unit, member: Member) -> Verdict | None:
    """Return why a pod is not among those that are placed with its gang; None where it is."""
    if member in unit.strays:
        return Verdict("NoGroup", _strays(unit))
    for muster in unit.musters:
        if member in muster.pending and not muster.want:
            name = f"group {muster.group.name}" if muster.group.name else "the gang"
            wanted = words.count(muster.group.desired or 0, "pod")
            return Verdict("Surplus", f"{name} wants {wanted} and has them")
    return None


def _strays(unit: Unit) -> str:
    names = ", ".join(member.name for member in unit.strays[:3])
    groups = ", ".join(muster.group.name for muster in unit.musters)
    return (
        f"{words.count(len(unit.strays), 'pod')} of the gang in none of its groups ({names}): the "
        f"label lockstep.dev/gang-group must name one of {groups}"
    )


def _has(muster: Muster[Member]) -> str:
    held = f" ({len(muster.gated)} of them gated)" if muster.gated else ""
    whose = f"group {muster.group.name} " if muster.group.name else ""
    return f"{whose}has {muster.total} of {words.count(muster.group.minimum, 'pod')}{held}"


def _unknown_tier(cluster: Cluster, unit: Unit) -> Verdict | None:
    tiers = cluster.table.tiers
    wishes = [unit.wish, *(muster.group.wish for muster in unit.musters)]
    for wish in wishes:
        if wish.required and tiers.level(wish.required) is None:
            return Verdict(
                "UnknownTier",
                f"requires the tier {wish.required}, which the Topology does not have; "
                f"its tiers are {', '.join(tiers.names)}",
            )
    return None


def _torn(cluster: Cluster, unit: Unit) -> Verdict | None:
    why = torn(unit, across=cluster.table.tiers.nvlink is not None)
    return Verdict("TensorGroupTorn", why, "pods of a tensor group that are alike") if why else None


def _odd(unit: Unit) -> Verdict | None:
    """Return what is wrong with how a pod asks for devices."""
    return _mixed(unit) or _misaligned(unit)


def _mixed(unit: Unit) -> Verdict | None:
    mixed = next((m for m in unit.pending if m.shape.share is not None and m.shape.gpus), None)
    if mixed is None:
        return None
    return Verdict(
        "MixedGpus",
        f"pod {mixed.name} asks for whole GPUs and for a share of others",
        "either whole GPUs or shares in one pod",
    )


def _misaligned(unit: Unit) -> Verdict | None:
    odd = next((m for m in unit.pending if m.shape.alignment.unknown), None)
    if odd is None:
        return None
    unknown = ", ".join(odd.shape.alignment.unknown)
    return Verdict(
        "BadAlignment",
        f"pod {odd.name} asks for its devices to be aligned by {unknown}; "
        f"there are {words.listing(RELATIONS)}",
    )


def warnings(cluster: Cluster, unit: Unit) -> list[Verdict]:
    """Return what is odd about a gang and yet does not keep it from starting."""
    gang = unit.gang
    if gang is None:
        return []
    found = []
    if gang.spec.queue not in (*cluster.ledger.specs, DEFAULT_QUEUE):
        found.append(
            Verdict("QueueMissing", f"queue {gang.spec.queue} does not exist; no limits apply")
        )
    named = gang.spec.priority_class_name
    if named and named not in cluster.priorities:
        found.append(
            Verdict(
                "PriorityClassMissing",
                f"PriorityClass {named} does not exist; the pods' own priority counts",
            )
        )
    if unit.node_policy and unit.node_policy not in cluster.policies:
        found.append(
            Verdict(
                "NodePolicyMissing",
                f"NodePolicy {unit.node_policy} does not exist; no nodes are filled first",
            )
        )
    if odd := checkpoint.unreadable(gang.metadata.annotations, gang.status.last_checkpoint):
        found.append(Verdict("CheckpointUnreadable", odd))
    preferred = unit.wish.preferred
    if preferred and cluster.table.tiers.level(preferred) is None:
        tiers = ", ".join(cluster.table.tiers.names)
        found.append(
            Verdict("UnknownTier", f"no tier {preferred} to prefer; the tiers are {tiers}")
        )
    return found
