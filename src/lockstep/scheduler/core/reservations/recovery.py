"""What an earlier leader has promised to the first that does not fit, taken up as it stands.

The promise is on record in the gang's status. Made anew it could only be for later: pods bound just
now do not say yet since when they run, and whoever has passed since then is in its way.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api import timestamp
from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.reservations.reserved_nodes import reserved
from lockstep.scheduler.core.state.cluster import Cluster


def recorded(cluster: Cluster) -> list[Reservation]:
    """Return the promises on record, whether they can be kept or not.

    Where there are several, all but one had come to nothing; the next one in line had the last, and
    comes first.
    """
    found = [one for workload in cluster.workloads.values() for one in _recorded(cluster, workload)]
    return sorted(found, key=lambda one: (-one.priority, one.turn))


def _recorded(cluster: Cluster, workload: Workload) -> Iterator[Reservation]:
    record = workload.gang.status.reservation if workload.gang is not None else None
    if record is None or not workload.open or workload.bound:
        return
    at = timestamp.read(record.time)
    if at is None:
        return  # nobody can keep what nobody can read; it is made anew
    waiting = {
        member.name: member for pod_group in workload.pod_groups for member in pod_group.pending
    }
    place = {waiting[pod]: node for pod, node in record.place.items() if pod in waiting}
    if place:
        yield reserved(cluster, workload, at, place)
