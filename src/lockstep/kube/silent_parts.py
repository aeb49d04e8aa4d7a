"""Which parts of an installed Lockstep do not run, by what the cluster says of them.

What is asked is open to every user (the chart's role ``lockstep-standing``). Of an embedded server,
whose supervisor starts parts again within a second, nothing is said.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import LEASES, AnyObject, Lease
from lockstep.api.names import (
    CONTROLLERS_LEASE,
    NODES_NAMESPACE,
    SCHEDULER_LEASE,
    SYSTEM_NAMESPACE,
)
from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Forbidden, NotFound

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", True, AnyObject)
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", True, AnyObject)
OURS: Final = "app.kubernetes.io/name=lockstep"
COMPONENT: Final = "app.kubernetes.io/component"
SILENCE: Final = 10.0
"""Seconds without a renewal of its lease after which a leader is said to be silent."""
LEADERS: Final = {"scheduler": SCHEDULER_LEASE, "controllers": CONTROLLERS_LEASE}
CARRY: Final = ("scheduler", "controllers", "agent")
"""Parts without which jobs do not start."""
MEANS: Final = {
    "scheduler": "jobs wait until one runs",
    "controllers": "jobs, datasets and services stay as they are until one runs",
    "router": "no inference service answers until one runs",
    "recorder": "usage is not recorded until it runs",
    "console": "its page does not open until it runs",
    "gateway": "notebooks do not open until it runs",
    "admission": "pods that ask for shares of GPUs are refused until it runs",
    "agent": "cards there are not handed out or watched",
    "data-cache": "pods there mount no datasets",
}


@dataclass(frozen=True, slots=True)
class Silent:
    """A part that does not run: all of it, or on some nodes."""

    part: str
    namespace: str
    seen: str

    def __str__(self) -> str:
        """Return what happened, what it means and what shows why."""
        meant = MEANS.get(self.part, "what it does stays undone")
        return f"{self.seen}: {meant}. `{self.look}` shows why"

    @property
    def look(self) -> str:
        """Return the command that shows why."""
        return f"kubectl -n {self.namespace} describe pods -l {COMPONENT}={self.part}"


async def silent_parts(client: Client, parts: Sequence[str] = ()) -> list[Silent]:
    """Return the parts that do not run, of those named, or of all.

    What this user may not ask is left out.

    Raises:
        ApiError: when the API server does not answer.
    """
    leases = asyncio.gather(*(_lease(client, name) for name in LEADERS.values()))
    sets, daemons, leading = await asyncio.gather(
        _list(client, DEPLOYMENTS, SYSTEM_NAMESPACE),
        _list(client, DAEMON_SETS, NODES_NAMESPACE),
        leases,
    )
    found = [*stopped(sets), *absent(daemons)]
    said = {one.part for one in found}
    running = {part_of(one) for one in sets} - said
    known = zip(LEADERS, leading, strict=True)
    found += unheard([(part, lease) for part, lease in known if part in running], time.time())
    return [one for one in found if not parts or one.part in parts]


def part_of(workload: AnyObject) -> str:
    """Return the part that a Deployment or DaemonSet of ours runs."""
    return workload.metadata.labels.get(COMPONENT, "")


def stopped(deployments: Iterable[AnyObject]) -> Iterator[Silent]:
    """Yield the parts of which no pod is ready."""
    for one in deployments:
        wanted, ready = one.spec.get("replicas", 1), one.status.get("readyReplicas", 0)
        if ready == 0:
            part = part_of(one)
            words = f"no {part} runs: 0 of {wanted} pods are ready"
            yield Silent(part, one.metadata.namespace, words)


def absent(daemons: Iterable[AnyObject]) -> Iterator[Silent]:
    """Yield the parts of nodes that are not ready on each node."""
    for one in daemons:
        wanted = one.status.get("desiredNumberScheduled", 0)
        missing = wanted - one.status.get("numberReady", 0)
        if missing > 0:
            part = part_of(one)
            words = f"no {part} runs on {missing} of {wanted} nodes"
            yield Silent(part, one.metadata.namespace, words)


def unheard(leases: Iterable[tuple[str, Lease | None]], now: float) -> Iterator[Silent]:
    """Yield the parts whose pods are ready and whose leader is silent all the same."""
    for part, lease in leases:
        if lease is None or not lease.spec.renew_time or not lease.spec.holder_identity:
            continue
        quiet = now - timestamp.parse(lease.spec.renew_time)
        if quiet > SILENCE:
            words = (
                f"the leading {part} was last heard of {quiet:.0f} s ago (Lease "
                f"{lease.metadata.name})"
            )
            yield Silent(part, SYSTEM_NAMESPACE, words)


async def installed(client: Client) -> list[AnyObject]:
    """Return the Deployments and DaemonSets of an installed Lockstep that this user may see."""
    places = ((DEPLOYMENTS, SYSTEM_NAMESPACE), (DAEMON_SETS, NODES_NAMESPACE))
    found = await asyncio.gather(*(_list(client, *place) for place in places))
    return [one for listed in found for one in listed]


async def _list(client: Client, res: Resource[Any], namespace: str) -> list[AnyObject]:
    try:
        return (await client.list(res, namespace, label_selector=OURS)).items
    except (Forbidden, NotFound):
        return []


async def _lease(client: Client, name: str) -> Lease | None:
    try:
        return await client.get(LEASES, name, SYSTEM_NAMESPACE)
    except (Forbidden, NotFound):
        return None


async def warnings(client: Client, parts: Sequence[str] = ()) -> list[str]:
    """Return in words which parts do not run; nothing where that cannot be asked."""
    try:
        return [str(one) for one in await silent_parts(client, parts)]
    except ApiError:
        return []
