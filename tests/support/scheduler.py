"""The scheduler and what it needs in processes of their own, and objects to work on."""

from __future__ import annotations

import asyncio
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import eventually

from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS
from lockstep.api.simulated import TOLERATION
from lockstep.kube.client import Client

STARTUP_SECONDS = 60.0


@dataclass
class PartProcess:
    """``lockstep scheduler`` or another part; it may be killed and started again."""

    kubeconfig: Path
    options: tuple[str, ...] = ("--no-leader-elect",)
    part: str = "scheduler"
    before: tuple[str, ...] = ()
    """Words before the command."""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> PartProcess:
        command = [*self.before, sys.executable, "-m", "lockstep", self.part, *self.options]
        command += ["--kubeconfig", str(self.kubeconfig), "--leashed"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            said = selector.select(STARTUP_SECONDS) and self.process.stdout.readline()
        if not said or not said.startswith("ready"):
            self.kill()
            raise AssertionError(f"the {self.part} said {said!r} instead of ready")
        return self

    def stop(self) -> int:
        """End it as a user would, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)


async def add_nodes(client: Client, names: Iterable[str], *, gpus: int = 8, **labels: str) -> None:
    """Create ready nodes with these labels."""
    offer = {"cpu": "96", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    status = {
        "capacity": offer,
        "allocatable": offer,
        "conditions": [{"type": "Ready", "status": "True"}],
    }

    async def one(name: str) -> None:
        own = {"kubernetes.io/hostname": name, **labels}
        await client.create(NODES, {"metadata": {"name": name, "labels": own}})
        await client.patch(NODES, name, {"status": status}, subresource="status")

    wanted = set(names)
    await asyncio.gather(*(one(name) for name in wanted))

    async def usable() -> bool:
        # A cluster with controllers takes a new node's taints off only a moment later.
        listed = await client.list(NODES)
        return all(not n.spec.taints for n in listed.items if n.metadata.name in wanted)

    await eventually(usable, 90.0, "nodes without taints")


def pod_body(name: str, *, gpus: int = 8, gang: str = "", **spec: Any) -> dict[str, Any]:
    """A pod for the scheduler, as plain data; it may go to simulated nodes."""
    amount = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    container = {"name": "main", "image": "none", "resources": {"limits": amount}}
    labels = {"lockstep.dev/gang": gang} if gang else {}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "schedulerName": "lockstep",
            "containers": [container],
            "tolerations": [TOLERATION],
            **spec,
        },
    }


async def add_gang(client: Client, name: str, members: int, *, gpus: int = 8, **spec: Any) -> None:
    """Create a gang and its pods."""
    meta = {"name": name, "namespace": "default"}
    await client.create(GANGS, {"metadata": meta, "spec": {"minMember": members, **spec}})
    await asyncio.gather(
        *(
            client.create(PODS, pod_body(f"{name}-{i}", gpus=gpus, gang=name))
            for i in range(members)
        )
    )


async def nodes_of(client: Client, gang: str) -> dict[str, str]:
    """Return the nodes of a gang's bound pods, by pod."""
    pods = await client.list(PODS, "default", label_selector=f"lockstep.dev/gang={gang}")
    return {p.metadata.name: p.spec.node_name for p in pods.items if p.spec.node_name}
