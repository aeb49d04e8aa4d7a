"""What metrics say: pages of replicas, the devices' objects, and queries of Prometheus.

Each source is asked at most every PERIOD seconds, beside the controller, which goes on with what
was read last.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlsplit

from lockstep.api.core import Pod
from lockstep.api.device_usage import DeviceUsage
from lockstep.compat.kserve.metrics import Metric
from lockstep.serve.core.metrics import scraped, utilization
from lockstep.serve.router.calls import Asked, Call
from lockstep.serve.router.upstream import Pool

PERIOD: Final = 15.0
TIMEOUT: Final = 5.0
_PAGE: Final = b"/metrics"
Key = tuple[str, str, str]


class Unreadable(Exception):
    """A metric that cannot be read now; the message says why."""


@dataclass
class Reading:
    """What was read of one component, and why not where it was not."""

    at: float = 0.0
    values: dict[Metric, float] = field(default_factory=dict)
    troubles: dict[Metric, str] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    cpu: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When each replica's seconds of CPU were read, and how many there were."""


class Readings:
    """The readings of all components."""

    def __init__(
        self,
        devices: Iterable[DeviceUsage] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._devices, self._clock = devices, clock
        self._known: dict[Key, Reading] = {}

    def known(self, key: Key) -> Reading:
        """Return what was read last."""
        return self._known.get(key) or Reading()

    def forget(self, key: Key) -> None:
        """Drop what is known of a component that is gone."""
        found = self._known.pop(key, None)
        if found is not None and found.task is not None:
            found.task.cancel()

    def get(self, key: Key, metrics: Sequence[Metric], pods: Sequence[Pod], port: int) -> Reading:
        """Return what was read last; ask anew where that is some time ago."""
        found = self._known.setdefault(key, Reading())
        now = self._clock()
        idle = found.task is None or found.task.done()
        if metrics and idle and (not found.at or now - found.at >= PERIOD):
            found.at = now
            found.task = asyncio.ensure_future(self._read(found, list(metrics), list(pods), port))
        return found

    async def _read(
        self, reading: Reading, metrics: list[Metric], pods: list[Pod], port: int
    ) -> None:
        pages: dict[str, dict[str, float]] = {}
        if any(one.kind in ("process", "server") for one in metrics):
            found = await asyncio.gather(*(self._page(pod, port) for pod in pods))
            pages = dict(one for one in found if one[1])
        values: dict[Metric, float] = {}
        troubles: dict[Metric, str] = {}
        for metric in metrics:
            try:
                if metric.kind == "prometheus":
                    values[metric] = await query(metric.address, metric.query)
                elif metric.kind == "gpu":
                    values[metric] = self._gpus(metric, pods)
                else:
                    values[metric] = self._replicas(reading, metric, pages)
            except Unreadable as error:
                troubles[metric] = str(error)
        reading.values, reading.troubles = values, troubles

    @staticmethod
    async def _page(pod: Pod, port: int) -> tuple[str, dict[str, float]]:
        pool = Pool(pod.status.pod_ip, port)
        answer = await Call(Asked(b"GET", _PAGE)).at(pool, TIMEOUT)
        pool.close()
        if answer.status != 200:
            return pod.metadata.uid, {}
        return pod.metadata.uid, scraped(answer.body.decode("utf-8", "replace"))

    def _replicas(
        self, reading: Reading, metric: Metric, pages: dict[str, dict[str, float]]
    ) -> float:
        name = metric.name
        if metric.kind == "process":
            name = "process_cpu_seconds_total" if name == "cpu" else "process_resident_memory_bytes"
        found = {uid: page[name] for uid, page in pages.items() if name in page}
        if not found:
            raise Unreadable(f"no replica has the metric {name} at its page /metrics")
        if metric.kind == "process" and metric.name == "cpu":
            found = self._rates(reading, found)
            if not found:
                raise Unreadable("the use of CPUs is known after a second reading")
        if metric.per == "utilization":
            return utilization(found, metric.base)
        return sum(found.values())

    def _rates(self, reading: Reading, seconds: dict[str, float]) -> dict[str, float]:
        now = self._clock()
        before, reading.cpu = reading.cpu, {uid: (now, one) for uid, one in seconds.items()}
        return {
            uid: max(0.0, used - before[uid][1]) / (now - before[uid][0])
            for uid, used in seconds.items()
            if uid in before and now > before[uid][0]
        }

    def _gpus(self, metric: Metric, pods: list[Pod]) -> float:
        names = {f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods}
        theirs = [gpu for usage in self._devices for gpu in usage.gpus if names & set(gpu.pods)]
        if not theirs:
            raise Unreadable("no node tells of GPUs that these replicas hold")
        if metric.name == "gpu-memory":
            shares = [gpu.memory_used / gpu.memory * 100 for gpu in theirs if gpu.memory]
        else:
            shares = [float(gpu.utilization) for gpu in theirs]
        # The mean of the GPUs, for each replica that has some.
        return sum(shares) / len(theirs) * len(names)


async def query(address: str, text: str) -> float:
    """Return the value of a Prometheus query, the sum where it has several.

    Raises:
        Unreadable: when it cannot be asked, or has no value.
    """
    values = await query_all(address, text)
    if not values:
        raise Unreadable(f"the query {text[:80]!r} has no value")
    return sum(values)


async def query_all(address: str, text: str) -> list[float]:
    """Return the values of a Prometheus query.

    Raises:
        Unreadable: when it cannot be asked.
    """
    parts = urlsplit(address)
    pool = Pool(parts.hostname or "", parts.port or 80)
    target = f"{parts.path.rstrip('/')}/api/v1/query?query={quote(text)}"
    asked = Asked(b"GET", target.encode(), [(b"Host", parts.netloc.encode())])
    answer = await Call(asked).at(pool, TIMEOUT)
    pool.close()
    try:
        found = json.loads(answer.body)
        if answer.status != 200:
            raise Unreadable(f"{address} answered {answer.status}: {found.get('error', '')}")
        data = found["data"]
        if data["resultType"] == "scalar":
            return [float(data["result"][1])]
        return [float(one["value"][1]) for one in data["result"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{address} gave no answer that is understood: {error}") from error


async def answer(address: str, text: str) -> list[float] | str:
    """Return the values of a query, or in words why there are none."""
    try:
        return await query_all(address, text)
    except Unreadable as error:
        return str(error)
