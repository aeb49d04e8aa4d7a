"""Runs of pipelines: what a step costs beyond its pod, kept results, decisions, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from tests.support.control_plane import ControlPlane

from bench.figure import Figure
from lockstep.api.core import PODS
from lockstep.api.pipeline import PIPELINE_RUNS, PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.told import Run, Seen

SLOW = True
CHAIN, AT_ONCE, STEPS, WIDE = 20, 101, 10_000, 1000
AT_ONCE_CREATED = 32
ARTEFACT = 1 << 30
DEADLINE = 120.0
POD: dict[str, Any] = {
    "spec": {
        "nodeSelector": {"lockstep.dev/node": "process"},
        "containers": [{"name": "main", "image": "none", "command": ["true"]}],
    }
}


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        plane = ControlPlane(Path(directory) / "up").start()
        try:
            found = asyncio.run(_play(plane))
        finally:
            plane.stop()
    return [*found, *_decisions(), *_artefact(), *_kfp_examples()]


def _kfp_examples() -> list[Figure]:
    """Return the share of KFP's compiled examples that is translated whole, where they are."""
    from tests.support.kfp_examples import BAR, NAMED, examples

    from lockstep.compat.kfp.translate import translate
    from lockstep.compat.translation import Refused
    from lockstep.pipelines.core.check import problems

    if not NAMED:
        return []
    found = whole = 0
    for one in examples():
        found += 1
        with contextlib.suppress(Refused):
            platform = one.documents[1] if len(one.documents) > 1 else {}
            spec = convert(translate(one.documents[0], platform), PipelineRunSpec)
            # What must be given to a run is no fault of the pipeline.
            whole += not [p for p in problems(spec) if not p.field.startswith("spec.arguments")]
    name = f"of {found} compiled examples of KFP, share translated whole"
    return [Figure(name, whole / found, "", limit=BAR)]


def _artefact() -> list[Figure]:
    """Return how fast 1 GiB goes in and out, beside the store's own client in one stream."""
    import obstore
    from obstore.store import S3Store
    from tests.support.s3 import S3, SECRET, USER
    from tools.s3 import build

    from lockstep.pipelines.store import CHUNK, fetch, upload

    if build.find() is None:
        return []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        file, back = place / "in", place / "out"
        with file.open("wb") as written:
            for _ in range(ARTEFACT // CHUNK):
                written.write(os.urandom(CHUNK))
        server = S3(place / "s3")
        try:
            server.bucket("runs")
            os.environ |= {
                "AWS_ACCESS_KEY_ID": USER,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_ENDPOINT_URL": server.url,
                "AWS_REGION": "us-east-1",
            }
            store = S3Store("runs", client_options={"allow_http": True})
            start = time.perf_counter()
            with file.open("rb") as read:
                obstore.put(store, "bare", read, chunk_size=CHUNK)
            with back.open("wb") as written:
                for data in obstore.get(store, "bare").stream(min_chunk_size=CHUNK):
                    written.write(data)
            bare = time.perf_counter() - start
            start = time.perf_counter()
            digest, _ = upload(file, "s3://runs/ours")
            assert fetch("s3://runs/ours", back) == digest
            ours = time.perf_counter() - start
        finally:
            server.close()
    name = "1 GiB artefact in and out with its digest, share of bare obstore's speed"
    return [Figure(name, bare / ours, "", limit=0.8).beside("bare obstore", 1.0)]


async def _play(plane: ControlPlane) -> list[Figure]:
    async with Client(ClusterConfig.load(plane.kubeconfig)) as client:
        await _bare(client, 2)  # the first pods of a node wait for its first programs
        bare = await _bare(client, CHAIN)
        chained = await _run(client, "chain", _chain())
        again = await _run(client, "again", _chain())
        made = (
            await client.list(PODS, "default", label_selector="lockstep.dev/pipeline-run=again")
        ).items
        assert not made, "a step with a known result was run"
        running = await _at_once(client)
        side, alone = await _side_by_side(client), await _creation(client)
    step = 1000 * (chained - bare) / CHAIN
    name = f"chain of {CHAIN} empty steps on a process node"
    return [
        Figure(f"{name}, a step over the loop", step, "ms", better="lower", limit=100.0).beside(
            "a bare loop over such pods, a pod", 1000 * bare / CHAIN
        ),
        Figure(f"{name}, again with all results known", again, "s", better="lower", limit=1.0),
        Figure(f"{AT_ONCE} runs at once, all Running", running, "s", better="lower", limit=5.0),
        Figure(
            f"{WIDE:,} steps side by side, share of the rate of bare creation",
            side / alone,
            "",
            limit=0.5,
        ).beside("bare creation of such pods", 1.0),
    ]


async def _side_by_side(client: Client) -> float:
    """Return how many pods a second a run makes for steps that wait for nothing."""
    task = {"name": "each", "template": "pod", "loop": {"items": json.dumps([*range(WIDE)])}}
    pod = {**POD, "spec": {**POD["spec"], "schedulerName": "nobody"}}
    spec = {"templates": {"main": {"graph": {"tasks": [task]}}, "pod": {"pod": {"template": pod}}}}
    start = time.perf_counter()
    await client.create(PIPELINE_RUNS, {"metadata": {"name": "wide"}, "spec": spec}, "default")
    while True:
        label = "lockstep.dev/pipeline-run=wide"
        found = await client.list(PODS, "default", label_selector=label)
        if len(found.items) == WIDE:
            return WIDE / (time.perf_counter() - start)
        await asyncio.sleep(0.05)


async def _creation(client: Client) -> float:
    """Return how many such pods a second are created by a client that does nothing else."""
    gate = asyncio.Semaphore(AT_ONCE_CREATED)
    spec = {**POD["spec"], "schedulerName": "nobody", "restartPolicy": "Never"}

    async def one(number: int) -> None:
        async with gate:
            body = {"metadata": {"name": f"alone-{number}"}, "spec": spec}
            await client.create(PODS, body, "default")

    start = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(WIDE)))
    return WIDE / (time.perf_counter() - start)


async def _bare(client: Client, count: int) -> float:
    """Run so many pods one after the other, each made once the last has ended."""
    start = time.perf_counter()
    for number in range(count):
        name = f"bare-{count}-{number}"
        spec = {**POD["spec"], "schedulerName": "lockstep", "restartPolicy": "Never"}
        body = {"metadata": {"name": name}, "spec": spec}
        made = await client.create(PODS, body, "default")
        watched = client.watch(
            PODS,
            "default",
            resource_version=made.metadata.resource_version,
            field_selector=f"metadata.name={name}",
        )
        async for event in watched:
            if event.object is not None and event.object.status.phase == "Succeeded":
                break
    return time.perf_counter() - start


def _chain() -> dict[str, Any]:
    tasks = [
        {
            "name": f"s{n}",
            "template": "pod",
            "after": [f"s{n - 1}"] if n else [],
            "keep": {"key": f"bench-{n}"},
        }
        for n in range(CHAIN)
    ]
    return {"templates": {"main": {"graph": {"tasks": tasks}}, "pod": {"pod": {"template": POD}}}}


async def _run(client: Client, name: str, spec: dict[str, Any]) -> float:
    start = time.perf_counter()
    await client.create(PIPELINE_RUNS, {"metadata": {"name": name}, "spec": spec}, "default")
    await _until(client, name)
    return time.perf_counter() - start


async def _until(client: Client, name: str) -> None:
    end = time.perf_counter() + DEADLINE
    while True:
        found = await client.get(PIPELINE_RUNS, name, "default")
        if found.status.completion_time is not None:
            assert found.status.phase == "Succeeded", found.status.message
            return
        assert time.perf_counter() < end, json.dumps(found.status.message)
        await asyncio.sleep(0.01)


async def _at_once(client: Client) -> float:
    """Return how long it takes until so many runs created at once are all Running."""
    spec = {
        "templates": {
            "main": {"graph": {"tasks": [{"name": "wait", "template": "wait"}]}},
            "wait": {"suspend": {}},
        }
    }
    start = time.perf_counter()
    bodies = [{"metadata": {"name": f"many-{n}"}, "spec": spec} for n in range(AT_ONCE)]
    await asyncio.gather(*(client.create(PIPELINE_RUNS, one, "default") for one in bodies))
    while True:
        runs = (await client.list(PIPELINE_RUNS, "default")).items
        if sum(one.status.phase == "Running" for one in runs) == AT_ONCE:
            return time.perf_counter() - start
        await asyncio.sleep(0.05)


def _decisions() -> list[Figure]:
    """Return what it costs to decide after one step of a large graph, and what it holds."""
    width = 100
    tasks = [
        {"name": f"t{n}", "template": "pod", "after": [f"t{n - width}"] if n >= width else []}
        for n in range(STEPS)
    ]
    templates = {"main": {"graph": {"tasks": tasks}}, "pod": {"pod": {"template": POD}}}
    spec = convert({"templates": templates}, PipelineRunSpec)
    tracemalloc.start()
    engine = Engine(Run("large", "default", "uid"), spec, 0.0)
    engine.take()
    held = tracemalloc.get_traced_memory()[0] / (1 << 20)
    tracemalloc.stop()
    took: list[float] = []
    for number in range(STEPS):
        start = time.perf_counter()
        engine.observe(f"main.t{number}", 0, Seen("Succeeded"), float(number))
        engine.take()
        took.append(time.perf_counter() - start)
    assert engine.root.phase == "Succeeded"
    slow = sorted(took)[int(0.99 * STEPS)] * 1000
    name = f"graph of {STEPS:,} steps"
    return [
        Figure(f"{name}, deciding after one (p99)", slow, "ms", better="lower", limit=1.0),
        Figure(f"{name}, memory of its engine", held, "MiB", better="lower", limit=200.0),
    ]
