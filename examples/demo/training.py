"""The training job of the demo: submitted, killed in the middle, and back."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import yaml
from narration import Failed, eventually, say

from lockstep.api.core import PODS, Pod
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError

DIGITS = Path(__file__).resolve().parent.parent / "digits"
NAMESPACE = "default"
JOB = "digits"
ACCURACY = 0.95
STEP = re.compile(r"^step (\d+)/(\d+)", re.MULTILINE)
START = re.compile(r"starts at step (\d+)")
RESULT = re.compile(r"^test accuracy ([\d.]+)", re.MULTILINE)


def manifest() -> dict[str, Any]:
    """Return ``examples/digits/job.yaml`` with this machine's directory."""
    job: dict[str, Any] = yaml.safe_load((DIGITS / "job.yaml").read_text())
    job["spec"]["roles"][0]["template"]["spec"]["containers"][0]["workingDir"] = str(DIGITS)
    return job


def child_of(pid: int) -> int:
    """Return the rank that the launcher *pid* has started.

    Beside it stands the process from which a rank that starts anew is forked.
    """
    tasks = Path(f"/proc/{pid}/task")
    children = [c for task in tasks.iterdir() for c in (task / "children").read_text().split()]
    found = [c for c in children if b"forkserver.py" not in Path(f"/proc/{c}/cmdline").read_bytes()]
    if len(found) != 1:
        raise Failed(f"the launcher {pid} has {len(found)} ranks instead of one")
    return int(found[0])


class Training:
    """Reads the job, its pods and their logs, and kills a rank."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen = "no pod has started"

    async def job(self) -> TrainingJob:
        """Return the job as the cluster has it."""
        return await self._client.get(TRAINING_JOBS, JOB, NAMESPACE)

    async def log(self, rank: int) -> str:
        """Return what a rank has written in its present attempt; nothing while it has not."""
        try:
            chunks = [c async for c in self._client.logs(NAMESPACE, f"{JOB}-worker-{rank}")]
        except ApiError:
            return ""
        return b"".join(chunks).decode()

    async def trained_for_a_while(self) -> int:
        """Return the step at which the job is once it is well under way."""

        async def look() -> int | None:
            job = await self.job()
            if job.status.phase in ("Failed", "Succeeded"):
                raise Failed(f"the job is {job.status.phase} too early: {job.status.message}")
            self._seen = f"{job.status.phase} {job.status.message}".strip()
            steps = STEP.findall(await self.log(0))
            if not steps:
                return None
            done, last = map(int, steps[-1])
            self._seen = f"step {done} of {last}"
            return done if done * 4 >= last else None

        return await eventually(look, "the job trains", within=240, progress=lambda: self._seen)

    async def kill(self, rank: int) -> Pod:
        """Kill a rank's real process with SIGKILL; return its pod as it was."""
        pod = await self._client.get(PODS, f"{JOB}-worker-{rank}", NAMESPACE)
        found = pod.status.container_statuses[0].container_id
        if not found.startswith("process://"):
            raise Failed(f"rank {rank} is no process of this machine: {found!r}")
        pid = child_of(int(found.removeprefix("process://")))
        os.kill(pid, signal.SIGKILL)
        say(f"killed rank {rank}: kill -9 {pid} on {pod.spec.node_name}")
        return pod

    async def back(self, before: Pod) -> int:
        """Return the step from which the ranks went on, in the pods that they were in."""

        async def look() -> int | None:
            job = await self.job()
            if job.status.phase == "Failed":
                raise Failed(f"the job gave up: {job.status.message}")
            self._seen = f"{job.status.phase} {job.status.message}".strip()
            pod = await self._client.get(PODS, before.metadata.name, NAMESPACE)
            if pod.metadata.uid != before.metadata.uid:
                raise Failed(f"{pod.metadata.name} was replaced, and only its rank was killed")
            started = START.findall(await self.log(0))
            return int(started[1]) if len(started) == 2 and job.status.restarts else None

        return await eventually(look, "the job comes back", within=180, progress=lambda: self._seen)

    async def finished(self) -> tuple[TrainingJob, float]:
        """Return the finished job and its test accuracy."""

        async def look() -> TrainingJob | None:
            job = await self.job()
            if job.status.phase == "Failed":
                raise Failed(f"the job failed: {job.status.message}")
            steps = STEP.findall(await self.log(0))
            self._seen = "step {} of {}".format(*steps[-1]) if steps else job.status.phase
            return job if job.status.phase == "Succeeded" else None

        job = await eventually(look, "the job finishes", within=300, progress=lambda: self._seen)
        result = RESULT.search(await self.log(0))
        if result is None:
            raise Failed("the job succeeded but its log names no test accuracy")
        return job, float(result[1])
