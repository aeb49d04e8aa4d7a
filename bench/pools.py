"""Node pools: how soon a request is sent, and how much is bought beyond what would do.

On the embedded API server the time is taken from a gang's last pod to the request at its pool's
provider. By itself the decision is timed over 2,000 nodes on which nothing fits and 500 waiting
gangs that no pool helps, each of a shape of its own, with a gang of 64 nodes last in line. What is
bought is held against the exact optimum (OR-tools' CP-SAT) on small random cases, and put to the
scheduler itself, which must place all of the gang on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from ortools.sat.python import cp_model
from tests.support.apiserver import ApiServer
from tests.support.drawn import add, draw_gang, node, places
from tests.support.pooled import node_pool, pool

from bench.figure import Figure
from bench.support import schedulers
from bench.support.cluster import each
from bench.support.cluster import node as node_body
from bench.support.month import DAY, month
from lockstep.api.core import NODES as NODES_KIND
from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import GANG_LABEL, SCHEDULER_NAME
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.price_list import PriceList
from lockstep.api.selectors import parse_labels
from lockstep.api.wire import convert
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.nodes.simulated.spec import parse
from lockstep.pools.core.growth import Growth, grow
from lockstep.pools.core.pool import Pool
from lockstep.pools.main import add_pools
from lockstep.runtime.manager import Manager
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.sim.engine.options import NO_FAULTS, Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import InitialCluster, initial_cluster_of

SLOW = True
NODES, WAITING, MEMBERS, CASES = 2000, 500, 64, 500
NOW = 1_000_000.0
SCAN_INTERVAL = 10.0
"""Seconds between two looks of cluster-autoscaler, by default."""


def run() -> list[Figure]:
    excess, unserved, partly = beyond_optimum()
    seconds = Figure(
        f"decision for a gang of {MEMBERS} nodes behind {WAITING} waiting gangs, {NODES:,} nodes",
        decision_seconds(),
        "s",
        better="lower",
        limit=1.0,
    )
    waited = Figure(
        f"gang of {MEMBERS} nodes waits to request sent, {WAITING} waiting gangs, {NODES:,} nodes",
        request_seconds(),
        "s",
        better="lower",
        limit=1.0,
    ).beside("cluster-autoscaler's scan interval", SCAN_INTERVAL, "its default, --scan-interval")
    least = "price of nodes bought beyond the optimum"
    return [
        waited,
        seconds,
        Figure(f"{least}, mean of {len(excess)}", mean(excess), "%", better="lower", limit=2.0),
        Figure(f"{least}, worst", max(excess), "%", better="lower", limit=10.0),
        Figure(
            "gangs left without nodes that would do", unserved, "gangs", better="lower", limit=0
        ),
        Figure("gangs partly served by bought nodes", partly, "gangs", better="lower", limit=0),
        *bills(),
    ]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def decision_seconds() -> float:
    """Return the seconds of one decision, after a first one that fills the caches."""
    cluster = Cluster()
    for number in range(NODES):
        leaf = {"spine": f"s{number // 128}", "leaf": f"l{number // 16}"}
        cluster.set_node(node(f"n{number}", gpus=4, labels=leaf))
    for number in range(WAITING):
        # Each of its own shape, and too large for any node that there is or could be.
        add(cluster, draw_gang(f"w{number}: 2xcpu{200 + number}", created="2026-01-01T00:00:00Z"))
    add(cluster, draw_gang(f"late: {MEMBERS}x8", created="2026-01-02T00:00:00Z"))
    pools = [pool(f"p: {2 * MEMBERS}x8 leaf=16 price=98"), pool(f"q: {MEMBERS}x8 leaf=8 price=40")]
    grow(cluster, pools, NOW)
    start = time.perf_counter()
    found = grow(cluster, pools, NOW)
    seconds = time.perf_counter() - start
    assert sum(len(one.slots) for one in found.purchases) == MEMBERS
    return seconds


@dataclass(frozen=True)
class Case:
    """A gang, nodes that are there, and pools, all small."""

    gang: str
    groups: tuple[tuple[int, int], ...]
    """Members and GPUs of each."""
    standing: tuple[int, ...]
    pools: tuple[tuple[int, int, float], ...]
    """Nodes, GPUs of one, price of one."""

    @classmethod
    def of(cls, seed: int) -> Case:
        chance = random.Random(seed)
        groups = tuple(
            (chance.randint(1, 9), chance.choice((1, 2, 3, 4, 6, 8)))
            for _ in range(chance.choice((1, 1, 2)))
        )
        pools = tuple(
            (chance.randint(1, 8), chance.choice((2, 4, 8)), chance.choice((1, 2, 3, 5, 7.5, 10)))
            for _ in range(chance.randint(1, 3))
        )
        standing = tuple(chance.choice((1, 2, 4, 8)) for _ in range(chance.randint(0, 3)))
        text = " + ".join(f"g{i}={count}x{gpus}" for i, (count, gpus) in enumerate(groups))
        return cls(f"a: {text}", groups, standing, pools)

    def cluster(self) -> Cluster:
        cluster = Cluster()
        cluster.set_node(node("down", ready=False))
        for number, gpus in enumerate(self.standing):
            cluster.set_node(node(f"n{number}", gpus=gpus))
        add(cluster, draw_gang(self.gang))
        return cluster

    def offered(self) -> list[Pool]:
        return [pool(f"p{i}: {n}x{g} price={price}") for i, (n, g, price) in enumerate(self.pools)]


def beyond_optimum() -> tuple[list[float], int, int]:
    """Return the excess in percent by case, how many gangs got none, and how many do not start."""
    excess: list[float] = []
    unserved = partly = seed = 0
    while len(excess) < CASES:
        case, seed = Case.of(seed), seed + 1
        least = optimum(case)
        if not least:  # it fits as it is, or nothing would do
            continue
        pools = case.offered()
        found = grow(case.cluster(), pools, NOW)
        cost = sum(len(one.slots) * case.pools[int(one.pool[1:])][2] for one in found.purchases)
        if not cost:
            unserved += 1
        partly += bool(cost) and not starts(case, pools, found)
        excess.append(100.0 * (cost / least - 1.0) if cost else 0.0)
    return excess, unserved, partly


def starts(case: Case, pools: list[Pool], found: Growth) -> bool:
    """Return whether the scheduler places all of the gang once the nodes are there."""
    cluster = case.cluster()
    by_name = {one.name: one for one in pools}
    for purchase in found.purchases:
        for slot in purchase.slots:
            cluster.set_node(by_name[purchase.pool].node(slot))
    Decider(cluster).decide(NOW)
    return len(places(cluster, "a-")) == sum(count for count, _ in case.groups)


def optimum(case: Case) -> float:
    """Return the least price of nodes that let the gang start; 0 where it needs none or none do."""
    model = cp_model.CpModel()
    rooms: list[tuple[int, cp_model.IntVar | None, float]] = []
    rooms += [(gpus, None, 0.0) for gpus in case.standing]
    for count, gpus, price in case.pools:
        rooms += [(gpus, model.new_bool_var(""), price) for _ in range(count)]
    placed = [[model.new_int_var(0, count, "") for _ in rooms] for count, _ in case.groups]
    for (count, _), row in zip(case.groups, placed, strict=True):
        model.add(sum(row) == count)
    for number, (gpus, bought, _) in enumerate(rooms):
        used = sum(row[number] * size for (_, size), row in zip(case.groups, placed, strict=True))
        model.add(used <= (gpus if bought is None else gpus * bought))
    priced = [(bought, int(2 * price)) for _, bought, price in rooms if bought is not None]
    model.minimize(sum(bought * price for bought, price in priced))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solved = solver.solve(model)
    return solver.objective_value / 2 if solved == cp_model.OPTIMAL else 0.0


class Cloud:
    """Takes requests and makes nothing; it notes when it was told."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.at = 0.0

    async def serve(self, request: web.Request) -> web.Response:
        call = await request.json()
        if call["call"] == "create" and not self.told.is_set():
            self.at = time.perf_counter()
            self.told.set()
        return web.json_response({"slots": list(range(MEMBERS))})


def request_seconds() -> float:
    """Return the seconds from a gang's last pod to the request at its pool's provider, on the
    embedded API server with the scheduler in a process of its own.
    """
    with tempfile.TemporaryDirectory() as directory:
        server = ApiServer(Path(directory) / "cluster").start()
        try:
            return asyncio.run(_requested(server))
        finally:
            server.kill()


async def _requested(server: ApiServer) -> float:
    cloud, app = Cloud(), web.Application()
    app.router.add_post("/", cloud.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with server.client() as client, server.client() as own:
        await ensure_crds(client)
        await each(range(NODES), lambda n: client.create(NODES_KIND, small_node(n)))
        for number in range(WAITING):
            await _gang(client, f"w{number}", 2, gpus=9 + number)
        manager = Manager(own, name="controllers", leader_elect=False)
        add_pools(manager)
        task = asyncio.create_task(manager.run(lambda _: None))
        stack = contextlib.ExitStack()
        try:
            process = stack.enter_context(schedulers.lockstep(server.kubeconfig))
            await asyncio.to_thread(schedulers.wait_ready, process)
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
            spec = {
                "max": 2 * MEMBERS,
                "template": {"capacity": {"cpu": 96, "memory": "1Ti", "nvidia.com/gpu": 8}},
                "provider": {"hook": {"url": url}},
            }
            await client.create(NODE_POOLS, {"metadata": {"name": "p"}, "spec": spec})
            await _refused(client)
            await _gang(client, "late", MEMBERS, gpus=8)
            start = time.perf_counter()
            await asyncio.wait_for(cloud.told.wait(), 60.0)
            return cloud.at - start
        finally:
            stack.close()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await runner.cleanup()


def small_node(number: int) -> dict[str, Any]:
    """A ready node of 4 GPUs, on which no pod of eight fits."""
    body = node_body(number)
    body["status"]["capacity"]["nvidia.com/gpu"] = "4"
    return body


async def _gang(client: Client, name: str, members: int, *, gpus: int) -> None:
    """Create a gang and its pods."""
    meta = {"name": name, "namespace": "default"}
    await client.create(GANGS, {"metadata": meta, "spec": {"minMember": members}})
    amount = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "none", "resources": {"limits": amount}}
    spec = {"schedulerName": SCHEDULER_NAME, "containers": [container]}

    async def make(number: int) -> object:
        labels = {GANG_LABEL: name}
        own = {"name": f"{name}-{number}", "namespace": "default", "labels": labels}
        return await client.create(PODS, {"metadata": own, "spec": spec})

    await each(range(members), make)


async def _refused(client: Client) -> None:
    """Wait until all that wait know that no pool helps them."""
    while True:
        gangs = (await client.list(GANGS)).items
        if len([gang for gang in gangs if gang.status.provision is not None]) == WAITING:
            return
        await asyncio.sleep(0.5)


SIZE, DAYS = 16, 30.0
"""Nodes of the cluster that a month of jobs is played on, and its days."""
PRICES = [{"gpuHour": 12.0}, {"gpuHour": 4.0, "spot": True}]
RECLAIMS = Faults(spot=parse_labels("pay=spot"), spot_mtbf=24.0, spot_return=1.0)


def bills() -> list[Figure]:
    """Return what a month costs on nodes that are always there, and on those of pools."""
    demand = node_pool(f"p: {SIZE}x8 arrival=5m idle=10m")
    spot = node_pool(f"s: {SIZE // 2}x8 spot arrival=3m idle=10m")
    fixed, mean_wait = _bill(initial_cluster_of(parse(f"{SIZE}x8")), NO_FAULTS)
    named = f"{DAYS:g} days on {SIZE} nodes"
    found = [Figure(f"{named}, always there: mean wait", mean_wait / 60, "min", better="lower")]
    for name, pools, faults in (
        ("on demand", [demand], NO_FAULTS),
        (f"and {SIZE // 2} spot nodes reclaimed once a day", [demand, spot], RECLAIMS),
    ):
        cost, mean_wait = _bill(InitialCluster(pools=pools), faults)
        bill = Figure(f"{named}, {name}: bill", cost, "EUR", better="lower")
        found.append(bill.beside("nodes that are always there", round(fixed)))
        found.append(Figure(f"{named}, {name}: mean wait", mean_wait / 60, "min", better="lower"))
    return found


def _bill(world: InitialCluster, faults: Faults) -> tuple[float, float]:
    """Return the bill, and the mean seconds that jobs waited."""
    listed = {"metadata": {"name": "cloud"}, "spec": {"currency": "EUR", "prices": PRICES}}
    world.price_lists = [convert(listed, PriceList)]
    jobs = [one for one in month(SIZE * 8, DAYS, 0) if one.gpus <= SIZE * 8]
    options = Options(faults=faults, period=10.0, until=2 * DAYS * DAY)
    result = Simulation(world, jobs, options).run()
    waits = result.lives.column("started") - result.lives.column("arrival")
    return sum(bill.cost for bill in result.bills.values()), float(np.nanmean(waits))
