"""Who uses how much: nodes, queues and jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lockstep.api import names
from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.queue import Queue
from lockstep.cli.views import amounts, gangs
from lockstep.cli.views.table import Column, Table, natural, table


def summary(nodes: Sequence[Node], pods: Sequence[Pod]) -> str:
    """Return the whole cluster in one line."""
    have = sum(amounts.allocatable(node, names.GPU) for node in nodes)
    used = amounts.total([pod for pod in pods if amounts.holds(pod)], names.GPU)
    share = f" ({100 * used / have:.0f} %)" if have else ""
    return f"{len(nodes)} nodes, {used} of {have} GPUs used{share}, {have - used} free"


def top_queues(queues: Iterable[Queue], members: Iterable[Gang], pods: Iterable[Pod]) -> Table:
    """Return how many GPUs each queue uses, and what waits in it."""
    queue_of = {(g.metadata.namespace, g.metadata.name): g.spec.queue for g in members}
    used: dict[str, int] = defaultdict(int)
    placed: dict[str, int] = defaultdict(int)
    waiting: dict[str, int] = defaultdict(int)
    for pod in pods:
        of = pod.metadata.labels.get(names.GANG_LABEL, "")
        queue = queue_of.get((pod.metadata.namespace, of), "default")
        if amounts.holds(pod):
            used[queue] += amounts.requested(pod, names.GPU)
    for gang in members:
        if gangs.waits(gang):
            waiting[gang.spec.queue] += 1
        elif gang.status.phase != "Finished":
            placed[gang.spec.queue] += 1
    rows = (
        (
            name,
            used[name],
            queue.spec.guaranteed.get(names.GPU),
            queue.spec.limit.get(names.GPU),
            placed[name],
            waiting[name],
        )
        for name, queue in sorted({queue.metadata.name: queue for queue in queues}.items())
    )
    columns = ("GPUs used", "Guaranteed", "Limit", "Gangs placed", "Gangs waiting")
    return table(("Queue", *(Column(c, number=True) for c in columns)), rows)


def top_jobs(pods: Iterable[Pod]) -> Table:
    """Return how many GPUs each job's pods use and wait for, the largest first."""
    jobs: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.status.phase not in ("Succeeded", "Failed"):
            jobs[pod.metadata.namespace, _owner(pod)].append(pod)
    usage = {key: _usage(members) for key, members in jobs.items()}
    ordered = sorted(usage, key=lambda key: (-sum(usage[key][:2]), key[0], natural(key[1])))
    columns = ("GPUs used", "GPUs waiting", "Pods placed", "Pods waiting", "Nodes")
    return table(
        ("Namespace", "Job or gang", *(Column(c, number=True) for c in columns)),
        ((*key, *usage[key]) for key in ordered),
    )


def _owner(pod: Pod) -> str:
    labels = pod.metadata.labels
    return labels.get(names.JOB_LABEL) or labels.get(names.GANG_LABEL) or pod.metadata.name


def _usage(pods: Sequence[Pod]) -> tuple[int, int, int, int, int]:
    placed = [pod for pod in pods if amounts.holds(pod)]
    waiting = [pod for pod in pods if not pod.spec.node_name]
    return (
        amounts.total(placed, names.GPU),
        amounts.total(waiting, names.GPU),
        len(placed),
        len(waiting),
        len({pod.spec.node_name for pod in placed}),
    )
