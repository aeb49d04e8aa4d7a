"""Training jobs on a cluster of the test's own: submit, wait, look."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

from tests.support.process_node import ProcessNode
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually

from lockstep.api.core import PODS, Pod
from lockstep.api.training import TRAINING_JOBS, TrainingJob, TrainingJobStatus
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound

Json = dict[str, Any]


@dataclass
class Cluster:
    """An API server with controllers, scheduler and a process node."""

    node: ProcessNode
    controllers: PartProcess
    client: Client

    async def submit(self, name: str, *roles: Json, framework: str = "plain", **spec: Any) -> None:
        """Create a job of *roles* in the namespace default."""
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"framework": framework, "roles": list(roles), **spec},
        }
        await self.client.create(TRAINING_JOBS, body)

    async def edit(self, name: str, **spec: Any) -> None:
        """Change a job as a user does."""
        await self.client.patch(TRAINING_JOBS, name, {"spec": spec}, "default")

    async def job(self, name: str) -> TrainingJob | None:
        """Return the job, unless it is gone."""
        try:
            return await self.client.get(TRAINING_JOBS, name, "default")
        except NotFound:
            return None

    async def reaches(self, name: str, phase: str, deadline: float = 90.0) -> TrainingJobStatus:
        """Return the job's status once it is in *phase*."""
        last: TrainingJobStatus | None = None

        async def look() -> TrainingJobStatus | None:
            nonlocal last
            found = await self.job(name)
            last = found.status if found else None
            return last if last and last.phase == phase else None

        try:
            return await eventually(look, deadline, f"phase {phase} of {name}")
        except AssertionError as error:
            raise AssertionError(f"{error}; its status: {last}") from None

    async def says(self, name: str, text: str, deadline: float = 60.0) -> TrainingJobStatus:
        """Return the job's status once its message holds *text*."""
        said = ""

        async def look() -> TrainingJobStatus | None:
            nonlocal said
            found = await self.job(name)
            said = found.status.message if found else "(gone)"
            return found.status if found and text in said else None

        try:
            return await eventually(look, deadline, f"{text!r} in the status of {name}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {said!r}") from None

    async def pods(self, name: str) -> dict[str, Pod]:
        """Return the job's pods by the end of their names, ``worker-0``."""
        found = await self.client.list(PODS, "default", label_selector=f"lockstep.dev/job={name}")
        return {p.metadata.name.removeprefix(f"{name}-"): p for p in found.items}

    async def running(self, name: str, count: int) -> dict[str, Pod]:
        """Return the job's pods once they are *count* and all run."""

        async def look() -> dict[str, Pod] | None:
            found = await self.pods(name)
            up = [p for p in found.values() if p.status.phase == "Running"]
            return found if len(found) == len(up) == count else None

        return await eventually(look, 90, f"{count} running pods of {name}")

    async def kill(self, name: str, pod: str) -> None:
        """Kill the process of a running pod's only container."""
        container = (await self.pods(name))[pod].status.container_statuses[0]
        os.kill(int(container.container_id.removeprefix("process://")), signal.SIGKILL)


def role(script: str, name: str = "worker", replicas: int = 2, **more: Any) -> Json:
    """Return a role whose pods run *script* in a shell; *container* holds more of its fields."""
    container: Json = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    container |= more.pop("container", {})
    spec = {"terminationGracePeriodSeconds": 2, "containers": [container], **more.pop("pod", {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}
