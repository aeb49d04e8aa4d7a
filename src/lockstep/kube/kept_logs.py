"""Logs of pods that are gone, as their nodes keep them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound


class KeptLog(msgspec.Struct, frozen=True):
    """A pod of a job whose logs a node has."""

    pod: str
    uid: str
    job_uid: str = ""
    role: str = ""
    index: str = ""
    attempt: str = ""
    containers: list[str] = []
    started: float = 0.0
    """Seconds since the epoch at which the node took the pod up."""
    ended: float = 0.0
    """Seconds since the epoch at which the pod left the node; 0 while it is here."""
    node: str = ""
    """The node; empty where the node itself tells."""

    @property
    def prefix(self) -> str:
        """What goes before its lines where there are several pods."""
        return f"[{self.role}-{self.index}] " if self.role and self.index else f"[{self.pod}] "


async def kept_logs(client: Client, namespace: str, job: str) -> list[KeptLog]:
    """Return the logs that nodes have of a job's pods, oldest first.

    Nodes with a kubelet keep none, so that on a cluster with such nodes alone there are none.
    """
    path = f"/api/v1/namespaces/{namespace}/pods/-/log"
    try:
        body = await client.get_raw(path, {"job": job})
    except (NotFound, Forbidden):
        return []
    found = msgspec.json.decode(body, type=list[KeptLog])
    return sorted(found, key=lambda one: (one.started, one.pod))


def of_one_job(found: Iterable[KeptLog], uid: str | None) -> list[KeptLog]:
    """Return those of the job *uid*; without it, of the last job of the name."""
    listed = list(found)
    if uid is None and listed:
        uid = listed[-1].job_uid
    return [one for one in listed if one.job_uid == uid]


def attempts(kept: Iterable[KeptLog], pods: Iterable[Pod]) -> list[int]:
    """Return the numbers of the attempts that wrote something, in order."""
    told = [one.attempt for one in kept]
    told += [pod.metadata.labels.get(names.ATTEMPT_LABEL, "") for pod in pods]
    return sorted({int(one) for one in told if one.isdigit()})
