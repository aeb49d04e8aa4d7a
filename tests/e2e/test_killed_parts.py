"""Parts are killed again and again while gangs are placed; no gang is ever left in part."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually

from lockstep.api.core import NODES, PODS, Node, Pod
from lockstep.api.gang import GANGS, Gang
from lockstep.api.resource import Resource
from lockstep.api.simulated import TOLERATION
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import AlreadyExists, ApiError

KILLED = ("apiserver", "scheduler", "scheduler", "simulate-nodes", "controllers")
KILLS = 8
SIZES = {
    "a": (32, "spine"),
    "b": (16, "spine"),
    "c": (8, "leaf"),
    "d": (32, "spine"),
    "e": (8, "leaf"),
}
"""Pods of 8 GPUs each, and the tier that holds them: 96 of them on 64 nodes."""


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    running = ControlPlane(
        tmp_path / "data",
        *("--no-process-node", "--simulate", "64x8,nodes-per-leaf=8,leaves-per-spine=4"),
    ).start()
    yield running
    await asyncio.to_thread(running.stop)


async def test_gangs_stay_whole_while_parts_are_killed(plane: ControlPlane) -> None:
    async with Client(ClusterConfig.load(plane.kubeconfig)) as client:
        killing = asyncio.create_task(_kill_parts(plane, random.Random(1)))  # noqa: S311
        for name, (size, tier) in SIZES.items():
            await _insist(client, GANGS, _gang(name, size, tier))
            for number in range(size):
                await _insist(client, PODS, _pod(name, number))
        await killing
        await eventually(lambda: _settled(client), 60, "every gang is placed or says why not")
        pods = (await client.list(PODS, "default")).items
        nodes = {node.metadata.name: node for node in (await client.list(NODES)).items}
    placed = {name: [p for p in pods if _of(p) == name and p.spec.node_name] for name in SIZES}
    assert {n: len(p) for n, p in placed.items()} == {
        n: SIZES[n][0] if p else 0 for n, p in placed.items()
    }
    assert sum(map(len, placed.values())) >= 56
    for name, (_, tier) in SIZES.items():
        assert len(_domains(placed[name], nodes, tier)) <= 1
    given = [p.spec.node_name for members in placed.values() for p in members]
    assert len(given) == len(set(given)), "each pod takes a whole node"


async def _kill_parts(plane: ControlPlane, rng: random.Random) -> None:
    for _ in range(KILLS):
        part = rng.choice(KILLED)
        pid = await eventually(lambda part=part: plane.child(part), 60, f"{part} runs")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        # Long enough that something happens in between, short enough that much is cut short.
        await asyncio.sleep(0.4)


async def _insist(client: Client, res: Resource[Any], obj: dict[str, Any]) -> None:
    async def once() -> bool:
        try:
            await client.create(res, obj, "default")
        except AlreadyExists:
            return True
        except ApiError:
            return False
        return True

    await eventually(once, 90, "the object is created")


async def _settled(client: Client) -> bool:
    try:
        gangs: list[Gang] = (await client.list(GANGS, "default")).items
    except ApiError:
        return False
    done = (g.status.phase == "Running" or g.status.reason == "NotEnoughRoom" for g in gangs)
    return len(gangs) == len(SIZES) and all(done)


def _of(pod: Pod) -> str:
    return pod.metadata.labels["lockstep.dev/gang"]


def _domains(pods: Iterable[Pod], nodes: dict[str, Node], tier: str) -> set[str]:
    return {nodes[pod.spec.node_name].metadata.labels[tier] for pod in pods}


def _gang(name: str, size: int, tier: str) -> dict[str, Any]:
    return {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": name},
        "spec": {"minMember": size, "topology": {"required": tier}},
    }


def _pod(gang: str, number: int) -> dict[str, Any]:
    main = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{gang}-{number}", "labels": {"lockstep.dev/gang": gang}},
        "spec": {"schedulerName": "lockstep", "tolerations": [TOLERATION], "containers": [main]},
    }
