"""Whether a share of GPUs may become larger: its cards and its queue must have the difference."""

from __future__ import annotations

import msgspec

from lockstep.api.core import Pod
from lockstep.api.names import NODE_KIND_LABEL
from lockstep.api.share_sizes import Resize, Size, held, in_words, resized, wish
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.quota.account import in_thousandths
from lockstep.scheduler.core.resources.gpu_shares import GpuShare
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.share_resizes import ResizeAnswer
from lockstep.scheduler.core.util.bitmask import indices_of


def answer_resize(cluster: Cluster, pod: Pod) -> ResizeAnswer:
    """Return whether the share of a pod that has a node gets the size that is wanted."""
    try:
        wanted = wish(pod.metadata.annotations)
    except ValueError as error:
        return ResizeAnswer(False, "Invalid", str(error))
    member = cluster.pods.get((pod.metadata.namespace, pod.metadata.name))
    before = member.shape.share if member is not None else None
    if wanted is None or member is None or before is None or not member.gpus:
        return ResizeAnswer(False, "NoShare", "the pod has no share of a GPU")
    row = cluster.table.rows.get(member.node)
    facts = cluster.table.facts[row] if row is not None else None
    if facts is None or facts.labels.get(NODE_KIND_LABEL) != "process":
        text = f"node {member.node} is no process node: shares keep their size there"
        return ResizeAnswer(False, "NotSupported", text)
    found = _shape(cluster, pod, wanted)
    if found is None:
        text = f"the pod has no container {wanted.container} with a share of a GPU"
        return ResizeAnswer(False, "NoShare", text)
    shape, size = found
    after = shape.share or before
    short = _short_on_cards(cluster, member, before, after) or _over_quota(cluster, member, shape)
    if short:
        return ResizeAnswer(False, "NoRoom", short)
    return ResizeAnswer(True, "Granted", in_words(size))


def _shape(cluster: Cluster, pod: Pod, wanted: Resize) -> tuple[PodShape, Size] | None:
    """Return the shape of a pod with the wanted size, and that size."""
    seen = pod.status.container_statuses
    sizes = {one.name: held(one.name, one.resources, seen) for one in pod.spec.containers}
    now = sizes.get(wanted.container, Size())
    if now == Size():
        return None
    sizes[wanted.container] = wanted.of(now)
    containers = [
        msgspec.structs.replace(one, resources=resized(one.resources, sizes[one.name]))
        for one in pod.spec.containers
    ]
    spec = msgspec.structs.replace(pod.spec, containers=containers)
    return cluster.shapes.of(spec, pod.metadata.annotations), sizes[wanted.container]


def _short_on_cards(cluster: Cluster, member: Member, before: GpuShare, after: GpuShare) -> str:
    """Return in words of which card the node has too little left for the difference."""
    table = cluster.table
    table.open_for(member.shape)
    free, ids = table.free[:, table.rows[member.node]], table.columns.card_ids
    kinds = (("memory", "MiB of memory"), ("compute", "hundredths of compute"))
    for card in indices_of(member.gpus):
        for kind, words in kinds:
            was, wanted = getattr(before, kind), getattr(after, kind)
            left = max(0, int(free[ids[kind][card]]))
            if wanted - was > left:
                return (
                    f"{wanted - was} {words} more are wanted of GPU {card} of node {member.node}, "
                    f"which has {left} left; the pod's share can grow from {was} to {was + left}"
                )
    return ""


def _over_quota(cluster: Cluster, member: Member, shape: PodShape) -> str:
    """Return in words which queue's ceiling the larger share would pass."""
    ledger = cluster.ledger
    if member.account is None or ledger.stale:
        return ""
    charged = ledger.charged(shape, cluster.card(member.node))
    more = {name: value - member.charged.get(name, 0) for name, value in charged.items()}
    grown = {name: value for name, value in more.items() if value > 0}
    over = ledger.lacking(ledger.counted_in(member), grown, cluster.capacity())
    if over is None:
        return ""
    unit = 1000 if in_thousandths(over.resource) else 1
    used, most, asked = (amount / unit for amount in (over.used, over.amount, over.asked))
    return (
        f"queue {over.account.queue} has {used:g} of {over.resource} in use and its {over.field} "
        f"is {most:g}; {asked:g} more are wanted"
    )
