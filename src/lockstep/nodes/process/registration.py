"""The Node object: registering it, keeping its lease, and saying that it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lockstep.api import names
from lockstep.api.core import LEASES, NODES
from lockstep.api.dataset_cache import CAN_CACHE_LABEL
from lockstep.api.meta import ObjectMeta
from lockstep.devices.core import stated
from lockstep.devices.core.model import Inventory
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.nodes.process import machine_info
from lockstep.nodes.process.status import timestamp
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_EVERY = 10.0
STATUS_EVERY = 300.0
RETRY = 1.0


@dataclass(frozen=True, slots=True)
class Description:
    """What the node says of itself."""

    name: str
    address: str
    port: int
    devices: Inventory
    problems: tuple[str, ...]
    """Limits that cannot be enforced here."""
    caches: bool = True
    """Whether it keeps datasets."""

    @property
    def labels(self) -> dict[str, str]:
        """Return the node's labels."""
        found = {
            names.HOSTNAME_LABEL: self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": machine_info.architecture(),
            # Kubelets still give the old names, too, and manifests still ask for them.
            "beta.kubernetes.io/arch": machine_info.architecture(),
            "beta.kubernetes.io/os": "linux",
            names.NODE_KIND_LABEL: "process",
            CAN_CACHE_LABEL: "true" if self.caches else "false",
        }
        return found | stated.labels(self.devices)

    @property
    def allocatable(self) -> dict[str, str]:
        """Return what pods may ask for."""
        found = {
            names.CPU: str(machine_info.cpus()),
            names.MEMORY: f"{machine_info.memory() >> 10}Ki",
            names.PODS: str(machine_info.MOST_PODS),
        }
        found |= {name: str(count) for name, count in stated.allocatable(self.devices).items()}
        if self.devices.ports:
            found[names.NICS] = str(sum(port.active for port in self.devices.ports))
        return found

    def metadata(self) -> dict[str, Any]:
        """Return the labels and annotations that belong to the node."""
        return {"labels": self.labels, "annotations": stated.told(self.devices)}

    def status(self, *, ready: bool, why: str, now: float, since: float) -> dict[str, Any]:
        """Return the node's status."""
        return {
            "capacity": self.allocatable,
            "allocatable": self.allocatable,
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
            "nodeInfo": machine_info.info(),
            "conditions": self._conditions(ready, why, timestamp(now), timestamp(since)),
        }

    def _conditions(self, ready: bool, why: str, now: str, since: str) -> list[dict[str, str]]:
        times = {"lastHeartbeatTime": now, "lastTransitionTime": since}
        enforced = not self.problems
        return [
            {
                "type": "Ready",
                "status": "True" if ready else "False",
                "reason": "NodeReady" if ready else "NodeStopped",
                "message": why,
                **times,
            },
            {
                "type": "LimitsEnforced",
                "status": "True" if enforced else "False",
                "reason": "ControlGroups" if enforced else "NotPermitted",
                "message": "; ".join(self.problems) or "CPU and memory limits are enforced",
                **times,
            },
        ]


class Registration:
    """Keeps the Node and its Lease on the server."""

    def __init__(self, client: Client, node: Description) -> None:
        self._client, self._node = client, node
        self._since = time.time()

    async def register(self) -> None:
        """Create the Node, or bring the one that is there up to date, and take the lease.

        Waits while the server cannot be reached.
        """
        while True:
            try:
                await self._write_node()
                await self._renew()
            except ApiError as error:
                log.warning("cannot register the node %s: %s", self._node.name, error)
                await asyncio.sleep(RETRY)
            else:
                return

    async def run(self) -> None:
        """Renew the lease and repeat the status until cancelled."""
        told = time.monotonic()
        while True:
            await asyncio.sleep(RENEW_EVERY)
            try:
                # A node that was deleted registers again, as a kubelet's does.
                there = await self._client.get(NODES, self._node.name)
                await self._renew()
                # One that was silent for a while may have been taken for lost.
                lost = all((c.type, c.status) != ("Ready", "True") for c in there.status.conditions)
                if lost or time.monotonic() - told > STATUS_EVERY:
                    await self._tell(ready=True, why="the process node runs")
                    told = time.monotonic()
            except NotFound:
                await self.register()
            except ApiError as error:
                log.warning("cannot renew the lease: %s", error)

    async def stop(self) -> None:
        """Say that the node runs no more, if the server still listens."""
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(2.0):
                self._since = time.time()
                await self._tell(ready=False, why="the process node was stopped")

    async def _write_node(self) -> None:
        meta = self._node.metadata()
        obj = {"metadata": {"name": self._node.name, **meta}, "spec": {}}
        try:
            await self._client.create(NODES, obj)
        except AlreadyExists:
            await self._client.patch(NODES, self._node.name, {"metadata": meta})
        await self._tell(ready=True, why="the process node runs")

    async def _tell(self, *, ready: bool, why: str) -> None:
        status = self._node.status(ready=ready, why=why, now=time.time(), since=self._since)
        # Conditions of others stay.
        how, meta = Patch.STRATEGIC, ObjectMeta(name=self._node.name)
        await patch_status(self._client, NODES, meta, status, how=how)

    async def _renew(self) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self._node.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }
        try:
            await self._client.patch(LEASES, self._node.name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFound:
            node = await self._client.get(NODES, self._node.name)
            owner = {
                "apiVersion": "v1",
                "kind": "Node",
                "name": self._node.name,
                "uid": node.metadata.uid,
            }
            obj = {
                "metadata": {
                    "name": self._node.name,
                    "namespace": LEASE_NAMESPACE,
                    "ownerReferences": [owner],
                },
                "spec": {**spec, "acquireTime": now},
            }
            with contextlib.suppress(AlreadyExists):
                await self._client.create(LEASES, obj, LEASE_NAMESPACE)
