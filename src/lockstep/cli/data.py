"""``lockstep data``: datasets, what nodes keep of them, and how it comes there."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Annotated, Any

from lockstep.api import duration
from lockstep.api.dataset_cache import DATASET_CACHES, DatasetCache
from lockstep.api.wire import to_builtins
from lockstep.cli.app import App, AtLeast
from lockstep.cli.connect import Anywhere, InNamespace, Session
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.options import Output
from lockstep.cli.output import Format, note, print_lines, print_objects, print_table, structured
from lockstep.cli.views.data import cache_table, dataset_table, load_table, of_dataset, why
from lockstep.cli.views.table import plain
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS, DataLoad
from lockstep.data.claims import CLAIMING_PODS, ClaimingPod, claims_of

app = App("Datasets: what there is, what nodes keep of it, warm-up and eviction.")

Name = Annotated[str, "Name of the dataset."]
OVER = ("Complete", "Failed")


@app.command("list")
async def list_(session: Anywhere, *, output: Output = Format.TABLE) -> None:
    """List datasets, with how much of each is cached and where.

    Example: lockstep data list
    """
    datasets = (await session.client.list(DATASETS, session.scope(DATASETS))).items
    if structured(output):
        print_objects([to_builtins(one) for one in datasets], output, single=False)
        return
    caches = await _caches(session)
    shown = dataset_table(datasets, caches, time.time())
    where = "" if session.all_namespaces else f" in {session.namespace}"
    print_table(shown, output, empty=f"no datasets{where}", namespaces=session.all_namespaces)


@app.command()
async def describe(session: InNamespace, name: Name) -> None:
    """Show a dataset: its sources, what each node has, its warm-ups and the pods that read it.

    Example: lockstep data describe images
    """
    dataset = await session.get(DATASETS, name, "dataset", "lockstep data list -A")
    caches = of_dataset(dataset, await _caches(session))
    loads = await _loads(session, name)
    readers = await _readers(session, name)
    lines = [f"Dataset:    {dataset.metadata.namespace}/{name}"]
    lines += [f"Phase:      {dataset.status.phase or 'Pending'}"]
    if reason := why(dataset):
        lines += [f"Reason:     {reason}"]
    for mount in dataset.spec.mounts:
        lines += [f"Source:     {mount.mount_point} at {mount.path or '/'}"]
    if dataset.status.ufs_total:
        lines += [f"Size:       {dataset.status.file_num} files, {dataset.status.ufs_total}"]
    lines += [
        f"{one.type}: {one.message}"
        for one in dataset.status.conditions
        if one.type != "Ready" and one.message
    ]
    lines += [f"Read by:    {', '.join(sorted(p.metadata.name for p in readers)) or 'no pod'}"]
    if caches:
        lines += ["", *plain(cache_table(caches).narrow()).splitlines()]
    if loads:
        lines += ["", "Warm-ups:", *plain(load_table(loads, time.time())).splitlines()]
    print_lines(lines)


@app.command()
async def warm(
    session: InNamespace,
    name: Name,
    *,
    path: Annotated[list[str] | None, "A path in the dataset; all of it by default."] = None,
    nodes: Annotated[int, AtLeast(0), "On how many nodes; 0 is all that keep the dataset."] = 0,
    reload: Annotated[
        bool, "--reload", "List the source again first, and bind what is there."
    ] = False,
    wait: Annotated[bool, "--wait/--no-wait", "Show the progress until it is over."] = True,
    timeout: Annotated[str, "How long to wait."] = "1h",
) -> None:
    """Bring a dataset into the caches of its nodes before jobs ask for it.

    \b
    Examples:
      lockstep data warm images
      lockstep data warm images --path /train --nodes 2 --no-wait
    """
    with usage("--timeout"):
        seconds = duration.parse(timeout) if wait else 0.0
    spec: dict[str, Any] = {
        "dataset": {"name": name},
        "loadMetadata": reload,
        "target": [{"path": one, "replicas": nodes} for one in path or ["/"]],
    }
    await _warm(session, name, spec, seconds)


@app.command()
async def evict(
    session: InNamespace,
    name: Name,
    *,
    node: Annotated[list[str] | None, "From this node; from all by default."] = None,
) -> None:
    """Take a dataset's files off nodes; it stays bound and is fetched again when pods read it.

    A node on which a pod mounts the dataset keeps it.

    Example: lockstep data evict images --node gpu-3
    """
    nodes = node or []
    dataset = await session.get(DATASETS, name, "dataset", "lockstep data list -A")
    caches = of_dataset(dataset, await _caches(session))
    unknown = set(nodes) - {one.spec.node for one in caches}
    if unknown:
        there = ", ".join(sorted(one.spec.node for one in caches)) or "no node"
        raise CommandFailed(f"{', '.join(sorted(unknown))}: keeps nothing of {name}; {there} does")
    reading = {pod.spec.node_name: pod.metadata.name for pod in await _readers(session, name)}
    for one in caches:
        here = one.spec.node
        if nodes and here not in nodes:
            continue
        if here in reading:
            note(f"{here} keeps it: pod {reading[here]} mounts it")
            continue
        # The controller makes it anew without anything to fetch.
        await session.client.delete(DATASET_CACHES, one.metadata.name, session.namespace)
        print(f"dataset/{name} evicted from {here}")


@app.command()
async def top(session: Anywhere, *, output: Output = Format.TABLE) -> None:
    """Show what each node keeps, and what comes in now.

    Example: lockstep data top -A
    """
    caches = await _caches(session)
    if structured(output):
        print_objects([to_builtins(one) for one in caches], output, single=False)
        return
    print_table(
        cache_table(caches), output, empty="no node keeps data", namespaces=session.all_namespaces
    )


async def _warm(session: Session, name: str, spec: dict[str, Any], seconds: float) -> None:
    await session.get(DATASETS, name, "dataset", "lockstep data list -A")
    load = f"{name[:50].rstrip('-.')}-{secrets.token_hex(3)}"
    body = {"metadata": {"name": load, "namespace": session.namespace}, "spec": spec}
    await session.client.create(DATA_LOADS, body, session.namespace)
    if not seconds:
        print(f"dataload/{load} created")
        return
    end, said = time.monotonic() + seconds, ""
    while (found := await _load(session, load)).status.phase not in OVER:
        infos = found.status.infos
        left = f", {infos['secondsLeft']} s left" if "secondsLeft" in infos else ""
        problem = f"; {infos['problem']}" if "problem" in infos else ""
        line = f"{found.status.phase or 'Pending'} {infos.get('progress', '0%')}{left}{problem}"
        if line != said:
            note(line)
            said = line
        if time.monotonic() > end:
            raise CommandFailed(
                f"dataload/{load} is not over: {line}", f"`lockstep data describe {name}`"
            )
        await asyncio.sleep(0.5)
    words = "; ".join(one.message for one in found.status.conditions if one.message)
    if found.status.phase == "Failed":
        raise CommandFailed(f"dataload/{load} failed: {words}")
    print(f"dataset/{name} is warm: {words}")


async def _caches(session: Session) -> list[DatasetCache]:
    return list((await session.client.list(DATASET_CACHES, session.scope(DATASET_CACHES))).items)


async def _load(session: Session, name: str) -> DataLoad:
    return await session.client.get(DATA_LOADS, name, session.namespace)


async def _loads(session: Session, name: str) -> list[DataLoad]:
    found = (await session.client.list(DATA_LOADS, session.namespace)).items
    return [one for one in found if one.spec.dataset.name == name]


async def _readers(session: Session, name: str) -> list[ClaimingPod]:
    """Return the pods that mount the dataset and have not ended."""
    pods = (await session.client.list(CLAIMING_PODS, session.namespace)).items
    return [
        pod
        for pod in pods
        if pod.status.phase not in ("Succeeded", "Failed")
        and f"{session.namespace}/{name}" in claims_of(pod)
    ]
