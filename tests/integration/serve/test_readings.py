"""Metrics from where they are: pages of replicas, devices, a real Prometheus."""

from __future__ import annotations

import pytest
from tests.support.routing import routing
from tests.support.waiting import eventually

from lockstep.api.core import Pod, PodStatus
from lockstep.api.device_usage import DeviceUsage, GpuUsage
from lockstep.api.meta import ObjectMeta
from lockstep.compat.kserve.metrics import Metric
from lockstep.serve.readings import PERIOD, Readings, Unreadable, query, query_all

WITHIN = 30.0
KEY = ("n", "svc", "predictor")


def pod(name: str = "a") -> Pod:
    meta = ObjectMeta(name=name, namespace="n", uid=name)
    return Pod(metadata=meta, status=PodStatus(phase="Running", pod_ip="127.0.0.1"))


async def test_replicas_are_asked_for_their_pages() -> None:
    seconds = 10.0
    page = b"process_cpu_seconds_total %f\nqueue 7\n"
    async with routing() as router:
        replica = await router.replica("r", lambda path, body: (200, page % seconds))
        now = 0.0
        readings = Readings(clock=lambda: now)
        cpu = Metric("process", "cpu", 80, "utilization", base=0.5)
        queue, missing = (
            Metric("server", "queue", 5, "average"),
            Metric("server", "no", 5, "average"),
        )
        metrics = [cpu, queue, missing]
        now = 1.0
        found = readings.get(KEY, metrics, [pod()], replica.port)
        await eventually(lambda: found.troubles, WITHIN)
        assert found.values == {queue: 7.0}
        assert "second reading" in found.troubles[cpu]
        assert "no replica has the metric no" in found.troubles[missing]
        now, seconds = now + PERIOD, 10.0 + PERIOD / 4
        readings.get(KEY, metrics, [pod()], replica.port)
        await eventually(lambda: cpu in found.values, WITHIN)
        assert found.values[cpu] == pytest.approx(50.0)
        assert replica.got[0][0] == "/metrics"


async def test_gpus_are_those_that_the_replicas_hold() -> None:
    gpus = [
        GpuUsage(index=0, memory=100, memory_used=30, utilization=80, pods=["n/a"]),
        GpuUsage(index=1, memory=100, memory_used=10, utilization=40, pods=["n/a"]),
        GpuUsage(index=2, memory=100, memory_used=90, utilization=99, pods=["n/other"]),
    ]
    readings = Readings([DeviceUsage(metadata=ObjectMeta(name="x"), gpus=gpus)], lambda: 1.0)
    use, memory = Metric("gpu", "gpu", 50, "average"), Metric("gpu", "gpu-memory", 50, "average")
    found = readings.get(KEY, [use, memory], [pod()], 1)
    await eventually(lambda: found.values, WITHIN)
    assert found.values == {use: 60.0, memory: 20.0}


async def test_prometheus_is_asked(prometheus: str) -> None:
    async def answers() -> bool:
        try:
            return await query(prometheus, "vector(3)") == 3.0
        except Unreadable:
            return False

    await eventually(answers, WITHIN, "prometheus is ready")
    assert await query(prometheus, "vector(1) + 2") == 3.0
    assert await query_all(prometheus, "absent_metric") == []
    with pytest.raises(Unreadable, match="has no value"):
        await query(prometheus, "absent_metric")
    with pytest.raises(Unreadable, match="400"):
        await query(prometheus, "((")
    with pytest.raises(Unreadable):
        await query("http://127.0.0.1:1", "up")
