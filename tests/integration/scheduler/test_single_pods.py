"""Pods on their own on a server: they are told when they start, as gangs are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.scheduler import PartProcess, pod_body
from tests.support.waiting import eventually

from lockstep.api import timestamp
from lockstep.api.core import PODS, Condition, Pod
from lockstep.api.start import split_start
from lockstep.cli.views.explain import explain_pod
from lockstep.kube.client import Client


@pytest.fixture
def running(any_server: Any) -> Iterator[None]:
    """A scheduler and two nodes of 8 GPUs."""
    configs = any_server.data / "kubeconfigs"
    parts = [
        PartProcess(configs / "scheduler.kubeconfig"),
        PartProcess(configs / "simulate-nodes.kubeconfig", options=("2x8",), part="simulate-nodes"),
    ]
    for part in parts:
        part.start()
    yield
    for part in parts:
        part.kill()


async def add(client: Client, name: str, **annotations: str) -> None:
    body = pod_body(name)
    body["metadata"]["annotations"] = {
        f"lockstep.dev/{key}": value for key, value in annotations.items()
    }
    await client.create(PODS, body)


def scheduled(pod: Pod) -> Condition | None:
    return next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)


async def test_one_that_waits_is_told_when_it_starts(any_server: Any, running: None) -> None:
    async with any_server.client() as client:
        await add(client, "short", runtime="600")
        await add(client, "long")

        async def both_run() -> list[Pod] | None:
            found = [await client.get(PODS, name, "default") for name in ("short", "long")]
            return found if all(pod.status.start_time for pod in found) else None

        short, _ = await eventually(both_run, 60.0)
        await add(client, "next", runtime="60")

        async def told() -> str | None:
            shown = scheduled(await client.get(PODS, "next", "default"))
            _, start = split_start(shown.message if shown is not None else "")
            return start.at if start is not None else None

        at = timestamp.parse(await eventually(told, 60.0) or "")
        expected = timestamp.parse(short.status.start_time or "") + 600
        assert abs(at - expected) <= 13  # 2 % of the wait, and roundings
        pod = await client.get(PODS, "next", "default")
        lines = explain_pod(pod, time.time())
        assert any(line.startswith("  estimated start: in ") for line in lines)

        await client.delete(PODS, "long", "default")

        async def placed() -> bool:
            shown = scheduled(await client.get(PODS, "next", "default"))
            return shown is not None and (shown.status, shown.message) == ("True", "")

        await eventually(placed, 60.0)


async def test_a_pod_behind_an_endless_one_learns_its_name(any_server: Any, running: None) -> None:
    async with any_server.client() as client:
        for name in ("a", "b", "c"):
            await add(client, name)

        async def told() -> bool:
            pods = [await client.get(PODS, name, "default") for name in ("a", "b", "c")]
            starts = [
                split_start(shown.message)[1]
                for pod in pods
                if (shown := scheduled(pod)) is not None and shown.status == "False"
            ]
            return any(
                start is not None and start.why.endswith("has no expected run time")
                for start in starts
            )

        await eventually(told, 60.0)
