"""Lists of 100,000 jobs, the map of 10,000 and 100,000 GPUs in a browser, and a change on screen.

The console's own server, pages and stream are real. Its copy of the cluster is filled directly, and
one user who may see everything is signed in without an API server: their cost is not in here.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.figure import Figure, NotMeasured
from lockstep.api.core import Node, NodeStatus, Pod, PodSpec, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.training import Role, TrainingJob, TrainingJobSpec, TrainingJobStatus
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.list_topics import JobList
from lockstep.console.sessions import Session, Sessions
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

SLOW = True
JOBS: Final = 100_000
SMALL, LARGE = 1_250, 12_500
"""Nodes of eight GPUs."""
ASKED: Final = 100
PHASES: Final = ("Running", "Pending", "Succeeded", "Failed")
PAGE: Final = Path(__file__).parents[1] / "src/lockstep/console/page"
READY: Final = Condition(type="Ready", status="True")


class Filled(ClusterCache):
    """A copy of a cluster that follows no server."""

    async def _read(self, *informers: Any) -> bool:
        return True

    def problem(self) -> str:
        """Return nothing: it is as current as it gets."""
        return ""


class Everything:
    """A fake of rights: all of them."""

    async def lister(self, res: Any, namespaces: Any) -> Any:
        return lambda _: True

    async def may_list(self, res: Any, namespace: str) -> bool:
        return True

    async def lists(self, res: Any, namespace: str) -> bool:
        return True

    async def may(self, ask: Any) -> bool:
        return True


def put(informer: Any, objects: Iterable[Any]) -> None:
    """Give an informer its objects as a list of the server would."""
    for change in informer._follower.listed(objects, "1"):
        for handler in informer._handlers:
            handler(change)


def job(number: int, phase: Any = None) -> TrainingJob:
    roles = [Role(name="worker", template={"spec": {"containers": []}}, replicas=number % 8 + 1)]
    stamp = f"2026-01-{number % 28 + 1:02}T{number % 24:02}:00:00Z"
    meta = ObjectMeta(
        name=f"run-{number:06}", namespace=f"team-{number % 50}", uid=f"u-{number}",
        creation_timestamp=stamp,
    )  # fmt: skip
    spec = TrainingJobSpec(framework="pytorch", roles=roles, queue=f"q-{number % 20}")
    status = TrainingJobStatus(phase=phase or PHASES[number % 4], message="needs 8 more GPUs")
    return TrainingJob(metadata=meta, spec=spec, status=status)


def nodes(count: int) -> list[Node]:
    return [
        Node(
            metadata=ObjectMeta(
                name=f"node-{n:05}", labels={"spine": f"s{n // 500}", "leaf": f"l{n // 25}"}
            ),
            status=NodeStatus(capacity={"nvidia.com/gpu": 8}, conditions=[READY]),
        )
        for n in range(count)
    ]


def pods(count: int) -> list[Pod]:
    """Return a pod for two of three nodes, which holds the whole node."""
    return [
        Pod(
            metadata=ObjectMeta(
                name=f"p-{n}", namespace=f"team-{n % 50}",
                labels={"lockstep.dev/job": f"j-{n // 4}"},
                annotations={"lockstep.dev/gpus": "0,1,2,3,4,5,6,7"},
            ),
            spec=PodSpec(node_name=f"node-{n:05}"),
            status=PodStatus(phase="Running"),
        )
        for n in range(count)
        if n % 3
    ]  # fmt: skip


def run() -> list[Figure]:
    return asyncio.run(_measured())


async def _measured() -> list[Figure]:
    async with Client(ClusterConfig(server="http://127.0.0.1:1")) as client:
        world = Filled(client)
        put(world.jobs, (job(number) for number in range(JOBS)))
        session = Session("bench", client, Everything(), "default", 0.0)  # type: ignore[arg-type]
        figures = await _lists(world, session)
        scripts = sum(len(gzip.compress(p.read_bytes())) for p in PAGE.rglob("*.js")) / 1000
        figures.append(Figure("script of the console, gzip", scripts, "KB", "lower", 150))
        async with _served(world, session) as address:
            figures += await _in_browser(world, address)
        return figures


async def _lists(world: ClusterCache, session: Session) -> list[Figure]:
    """Ask for lists as the API answers them: sorted, filtered, searched, far pages."""
    chosen = random.Random(1)
    seconds, sizes = [], []
    for _ in range(ASKED):
        asked = {
            "sort": chosen.choice(("-created", "name", "-gpus", "queue")),
            "phase": chosen.choice(("", "Running", "Failed,Pending")),
            "q": chosen.choice(("", "", "run-0", "7/run")),
            "offset": chosen.choice(("0", "50", "5000")),
            "limit": "50",
        }
        topic = JobList(world, session, asked)
        begin = time.perf_counter()
        found = await topic.picture()
        body = msgspec.json.encode([found.rows[key] for key in found.order])
        seconds.append(time.perf_counter() - begin)
        sizes.append(len(body))
    p95 = statistics.quantiles(seconds, n=20)[-1] * 1000
    listed = Figure("list of 100,000 jobs at the API, p95", p95, "ms", "lower", 100)
    return [
        listed.beside("SkyPilot, 50,022 jobs, paged", 500, "published"),
        Figure("its largest answer", max(sizes) / 1000, "KB", "lower", 64),
    ]


@asynccontextmanager
async def _served(world: ClusterCache, session: Session) -> AsyncIterator[str]:
    from aiohttp import web

    from lockstep.console.app import Console, Parts
    from lockstep.console.apps import Apps
    from lockstep.console.audit import Trail
    from lockstep.console.records import Records
    from lockstep.console.signing_in import Settings, SigningIn

    sessions = Sessions(session.client.config, None)
    sessions._open["bench"] = session
    session.used = asyncio.get_running_loop().time()
    origins: set[str] = set()
    signing_in = SigningIn(sessions, Settings(origins, "lockstep-bench"))  # type: ignore[arg-type]
    apps = Apps(())
    parts = Parts(
        world, sessions, signing_in, apps, Trail(None, None), Records(None, session.client), None
    )
    runner = web.AppRunner(Console(parts).app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    origins.add(address)
    yield address
    await runner.cleanup()


async def _in_browser(world: ClusterCache, address: str) -> list[Figure]:
    program = shutil.which("chromium")
    if program is None:
        raise NotMeasured("it needs Chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        figures = [await _jobs_page(browser, address)]
        page = await _opened(browser, address)
        figures.append(await _seen(world, page, address))
        for count, bar in ((SMALL, 1.0), (LARGE, 3.0)):
            put(world.nodes, nodes(count))
            put(world.pods, pods(count))
            figures += await _map(browser, address, count * 8, bar)
        await browser.close()
        return figures


async def _opened(browser: Any, address: str) -> Any:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    await context.add_cookies([{"name": "lockstep-bench", "value": "bench", "url": address}])
    page = await context.new_page()
    page.set_default_timeout(20_000)
    return page


async def _jobs_page(browser: Any, address: str) -> Figure:
    page = await _opened(browser, address)
    begin = time.perf_counter()
    await page.goto(f"{address}/jobs")
    await page.locator("tbody tr").first.wait_for()
    seconds = time.perf_counter() - begin
    await page.context.close()
    found = Figure("jobs page usable, cold cache", seconds, "s", "lower", 1.5)
    return found.beside("OpenPAI, 30,000 jobs", 10, "published")


async def _seen(world: ClusterCache, page: Any, address: str) -> Figure:
    """Change one job among 200 changes a second, and wait for its new word on the screen."""
    await page.goto(f"{address}/jobs?q=run-000001")
    await page.locator("tbody tr").first.wait_for()
    seconds = []
    for turn in range(40):
        phase = ("Restarting", "Suspended")[turn % 2]
        for number in range(20):
            world.job_list.put(*_row(job(50_000 + number, PHASES[turn % 4])))
        begin = time.perf_counter()
        world.job_list.put(*_row(job(1, phase)))
        world._tell("TrainingJob", "team-1", "run-000001")
        await page.locator("tbody .badge", has_text=phase).first.wait_for()
        seconds.append(time.perf_counter() - begin)
    return Figure("a change on screen, slowest of 40", max(seconds), "s", "lower", 1.0)


def _row(changed: TrainingJob) -> tuple[str, Any]:
    from lockstep.console.views import jobs

    meta = changed.metadata
    return jobs.key_of(meta.namespace, meta.name), jobs.row(changed, None)


async def _map(browser: Any, address: str, gpus: int, bar: float) -> list[Figure]:
    page = await _opened(browser, address)
    begin = time.perf_counter()
    await page.goto(f"{address}/map")
    await page.locator("canvas[data-frames]").wait_for()
    first = time.perf_counter() - begin
    rate = await page.evaluate(PAN)
    await page.context.close()
    return [
        Figure(f"map of {gpus:,} GPUs, first picture", first, "s", "lower", bar),
        Figure(f"map of {gpus:,} GPUs, pan and zoom", rate, "frames/s", "higher", 30),
    ]


PAN: Final = """async () => {
  const canvas = document.querySelector('canvas');
  const before = Number(canvas.dataset.frames);
  const start = performance.now();
  let turn = 0;
  while (performance.now() - start < 3000) {
    canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: turn++ % 20 < 10 ? -1 : 1, clientX: 700,
                                                  clientY: 500, cancelable: true}));
    await new Promise(requestAnimationFrame);
  }
  return (Number(canvas.dataset.frames) - before) / ((performance.now() - start) / 1000);
}"""
