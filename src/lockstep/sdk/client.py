"""The clients: one for asyncio, and one that blocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import PODS, Pod
from lockstep.api.goodput import spent
from lockstep.api.names import JOB_LABEL
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.usage_query import Group, UsageQuerySpec, UsageQueryStatus
from lockstep.api.validation import problems
from lockstep.api.wire import convert, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.code.sending import Bundle, bundle
from lockstep.kube.code.store import adopt, upload
from lockstep.kube.code.tree import BadCode
from lockstep.kube.config import ClusterConfig
from lockstep.kube.named import readable
from lockstep.kube.usage import ask
from lockstep.sdk.trainer import BadTrainer, Trainer

T = TypeVar("T")
Status = Literal["Running", "Succeeded", "Failed", "Suspended"]

LOOK_AGAIN: Final = 0.3
"""Seconds between two looks at a job that is waited for."""
_ENDED: Final = ("Succeeded", "Failed")


class JobFailed(RuntimeError):
    """A job that was waited for has failed; *job* is how it ended."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__(f"job {job.metadata.name} failed: {job.status.message}")
        self.job = job


class AsyncTrainerClient:
    """Jobs of one namespace; an asynchronous context manager.

    Every method raises ``lockstep.kube.errors.ApiError`` when the server refuses or is not there.
    """

    def __init__(
        self, *, kubeconfig: Path | None = None, context: str | None = None, namespace: str = ""
    ) -> None:
        """Connect to the cluster that ``lockstep`` itself would use.

        Raises:
            ConfigError: when no cluster is configured.
        """
        self._client = Client(ClusterConfig.load(kubeconfig, context))
        self.namespace = namespace or self._client.config.namespace or "default"

    async def __aenter__(self) -> AsyncTrainerClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.close()

    async def train(self, trainer: Trainer, name: str | None = None) -> str:
        """Submit a job and return its name.

        Raises:
            BadTrainer: when the trainer makes no sense, or its code cannot be sent.
        """
        body = trainer.job(name)
        body["metadata"]["namespace"] = self.namespace
        code = await asyncio.to_thread(_code, trainer.code)
        if code is not None:
            body["spec"]["code"] = to_builtins(code.code)
        if wrong := problems(convert(body, TrainingJob)):
            raise BadTrainer("; and ".join(str(one) for one in wrong))
        if code is not None:
            await upload(self._client, self.namespace, code.parts)
        made = await self._client.create(TRAINING_JOBS, body, self.namespace)
        if code is not None:
            await adopt(self._client, self.namespace, code.parts, [made.metadata])
        return made.metadata.name

    async def list_jobs(self) -> list[TrainingJob]:
        """Return all jobs, by name."""
        listing = await self._client.list(TRAINING_JOBS, self.namespace)
        return sorted(listing.items, key=lambda job: job.metadata.name)

    async def get_job(self, name: str) -> TrainingJob:
        """Return a job."""
        return await self._client.get(TRAINING_JOBS, name, self.namespace)

    async def get_job_metrics(self, name: str) -> dict[str, float]:
        """Return what is measured of a job: pods running and ready, restarts, time by cause.

        ``goodput`` is the share of its time in which it trained; ``seconds_CAUSE`` says what the
        time went to, up to now. ``step`` is there once ranks have told how far they are.
        """
        job = await self.get_job(name)
        seconds = spent(job.status.goodput, time.time())
        found = {f"seconds_{cause}": value for cause, value in seconds.items()}
        total = sum(seconds.values())
        if total:
            found["goodput"] = seconds.get("productive", 0.0) / total
        if job.status.goodput.step >= 0:
            found["step"] = float(job.status.goodput.step)
        for state in ("active", "ready", "failed"):
            counts = job.status.replica_statuses.values()
            found[f"pods_{state}"] = float(sum(getattr(one, state) for one in counts))
        found["restarts"] = float(job.status.restarts)
        return found

    async def get_job_logs(self, name: str, *, tail: int | None = None) -> dict[str, str]:
        """Return what each pod of a job has written so far, by pod; of those that have started."""
        chosen = f"{JOB_LABEL}={name}"
        listing = await self._client.list(PODS, self.namespace, label_selector=chosen)
        started = [pod for pod in listing.items if pod.status.phase != "Pending"]
        found = {pod.metadata.name: await self._log(pod, tail) for pod in started}
        return dict(sorted(found.items()))

    async def _log(self, pod: Pod, tail: int | None) -> str:
        params = {} if tail is None else {"tailLines": str(tail)}
        path = f"{PODS.path(self.namespace, pod.metadata.name)}/log"
        params["container"] = pod.spec.containers[0].name
        return (await self._client.get_raw(path, params)).decode(errors="replace")

    async def wait_for_job_status(
        self, name: str, status: Sequence[Status] = ("Succeeded",), timeout: float = 600.0
    ) -> TrainingJob:
        """Return the job once it is in one of the states *status*.

        Raises:
            JobFailed: when it fails, unless that is waited for.
            TimeoutError: when that takes longer than *timeout* seconds.
        """
        end = time.monotonic() + timeout
        while True:
            job = await self.get_job(name)
            if job.status.phase in status:
                return job
            if job.status.phase == "Failed":
                raise JobFailed(job)
            if job.status.phase in _ENDED or time.monotonic() > end:
                told = f"it is {job.status.phase}; {job.status.message}"
                raise TimeoutError(f"job {name} is not {' or '.join(status)}: {told}")
            await asyncio.sleep(LOOK_AGAIN)

    async def scale_job(self, name: str, num_nodes: int, role: str = "worker") -> None:
        """Change how many pods of *role* a job has; one that is not elastic starts anew.

        Raises:
            ValueError: when it has no such role, or may not have so many.
        """
        path = TRAINING_JOBS.path(self.namespace, name)
        raw: dict[str, Any] = msgspec.json.decode(await self._client.get_raw(path))
        roles: list[dict[str, Any]] = raw["spec"]["roles"]
        chosen = next((one for one in roles if one["name"] == role), None)
        if chosen is None:
            known = ", ".join(one["name"] for one in roles)
            raise ValueError(f"role: given {role!r}; the roles of job {name} are {known}")
        low, high = chosen.get("min", 1), chosen.get("max", num_nodes)
        if not low <= num_nodes <= high:
            raise ValueError(f"num_nodes: given {num_nodes}; job {name} may have {low} to {high}")
        chosen["replicas"] = num_nodes
        version = {"resourceVersion": raw["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "spec": {"roles": roles}}
        await self._client.patch(TRAINING_JOBS, name, patch, self.namespace)

    async def suspend_job(self, name: str) -> None:
        """Take a job off the cluster and keep it."""
        await self._suspend(name, suspended=True)

    async def resume_job(self, name: str) -> None:
        """Let a suspended job wait for its place again."""
        await self._suspend(name, suspended=False)

    async def _suspend(self, name: str, *, suspended: bool) -> None:
        patch = {"spec": {"suspend": suspended}}
        await self._client.patch(TRAINING_JOBS, name, patch, self.namespace)

    async def delete_job(self, name: str) -> None:
        """Cancel a job: it goes with its pods."""
        await self._client.delete(TRAINING_JOBS, name, self.namespace, propagation="Background")

    async def list_queues(self) -> list[Queue]:
        """Return all queues, or those of the user's teams and above them."""
        return await readable(self._client, QUEUES)

    async def get_cost(
        self, by: Sequence[Group] = ("job",), since: float = 0.0
    ) -> UsageQueryStatus:
        """Return the GPU hours and the cost of the namespace since a Unix time, in lines *by*.

        Raises:
            lockstep.kube.usage.NoAnswer: when no recorder answers, or it refuses.
        """
        start = timestamp.show(since) if since else None
        spec = UsageQuerySpec(by=list(by), start=start)
        return await ask(self._client, self.namespace, spec)


class TrainerClient:
    """The same for programs without asyncio; a context manager."""

    def __init__(
        self, *, kubeconfig: Path | None = None, context: str | None = None, namespace: str = ""
    ) -> None:
        """Connect to the cluster that ``lockstep`` itself would use.

        Raises:
            ConfigError: when no cluster is configured.
        """
        self._runner = asyncio.Runner()
        self._inner = self._run(_open(kubeconfig, context, namespace))

    def __enter__(self) -> TrainerClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._run(self._inner.__aexit__(None, None, None))
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def train(self, trainer: Trainer, name: str | None = None) -> str:
        """As that of the asynchronous client."""
        return self._run(self._inner.train(trainer, name))

    def list_jobs(self) -> list[TrainingJob]:
        """As that of the asynchronous client."""
        return self._run(self._inner.list_jobs())

    def get_job(self, name: str) -> TrainingJob:
        """As that of the asynchronous client."""
        return self._run(self._inner.get_job(name))

    def get_job_logs(self, name: str, *, tail: int | None = None) -> dict[str, str]:
        """As that of the asynchronous client."""
        return self._run(self._inner.get_job_logs(name, tail=tail))

    def get_job_metrics(self, name: str) -> dict[str, float]:
        """As that of the asynchronous client."""
        return self._run(self._inner.get_job_metrics(name))

    def wait_for_job_status(
        self, name: str, status: Sequence[Status] = ("Succeeded",), timeout: float = 600.0
    ) -> TrainingJob:
        """As that of the asynchronous client."""
        return self._run(self._inner.wait_for_job_status(name, status, timeout))

    def scale_job(self, name: str, num_nodes: int, role: str = "worker") -> None:
        """As that of the asynchronous client."""
        self._run(self._inner.scale_job(name, num_nodes, role))

    def suspend_job(self, name: str) -> None:
        """As that of the asynchronous client."""
        self._run(self._inner.suspend_job(name))

    def resume_job(self, name: str) -> None:
        """As that of the asynchronous client."""
        self._run(self._inner.resume_job(name))

    def delete_job(self, name: str) -> None:
        """As that of the asynchronous client."""
        self._run(self._inner.delete_job(name))

    def list_queues(self) -> list[Queue]:
        """As that of the asynchronous client."""
        return self._run(self._inner.list_queues())

    def get_cost(self, by: Sequence[Group] = ("job",), since: float = 0.0) -> UsageQueryStatus:
        """As that of the asynchronous client."""
        return self._run(self._inner.get_cost(by, since))


async def _open(kubeconfig: Path | None, context: str | None, namespace: str) -> AsyncTrainerClient:
    return AsyncTrainerClient(kubeconfig=kubeconfig, context=context, namespace=namespace)


def _code(root: str | Path | None) -> Bundle | None:
    try:
        return None if root is None else bundle(Path(root))
    except BadCode as error:
        raise BadTrainer(f"code: {error}; {error.remedy}") from error
