"""What the node agent costs and how soon it acts, on eight stub GPUs."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.apiserver import ApiServer
from tests.support.stub_gpus import StubGpus, h200x8

from bench.figure import Figure, NotMeasured

MEMORY_LIMIT, CPU_LIMIT, SCRAPE_LIMIT = 80.0, 1.0, 5.0
START_LIMIT, LOST_LIMIT = 2.0, 1.0
SECONDS = 20.0
SCRAPES = 300
LOSSES = 8
NODE = "bench"
DCGM = "dcgm-exporter, published (pytorch/ci-infra 1011)"


def run() -> list[Figure]:
    if shutil.which("cc") is None:
        raise NotMeasured("no C compiler (cc) to build the stub GPUs with")
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        gpus = StubGpus(data / "gpus")
        gpus.update(h200x8())
        server = ApiServer(data / "cluster").start()
        agent = None
        try:
            metadata = {"name": NODE, "labels": {"lockstep.dev/node": "process"}}
            server.request("POST", "/api/v1/nodes", {"metadata": metadata})
            began = time.perf_counter()
            agent, port = _start(server, gpus)
            while not (_scrape(port) and _healthy(server)):
                time.sleep(0.01)
            started = time.perf_counter() - began
            time.sleep(3.0)
            memory, cpu = _cost(agent.pid)
            scrapes = sorted(_timed(port) for _ in range(SCRAPES))
            lost = [_lose(server, gpus, index % 8) for index in range(LOSSES)]
        finally:
            if agent is not None:
                agent.kill()
                agent.wait()
            server.kill()
    p99 = scrapes[int(len(scrapes) * 0.99)] * 1000
    return [
        Figure("agent's memory (PSS), 8 GPUs at 1 Hz", memory, "MiB", "lower", MEMORY_LIMIT).beside(
            "dcgm-exporter", 405.0, DCGM
        ),
        Figure("agent's share of a core", cpu, "%", "lower", CPU_LIMIT),
        Figure("scrape (p99)", p99, "ms", "lower", SCRAPE_LIMIT),
        Figure(
            "agent's start to metrics and node stated", started, "s", "lower", START_LIMIT
        ).beside("dcgm-exporter", 28.0, DCGM),
        Figure(
            "card lost to withdrawn (median)", statistics.median(lost), "s", "lower", LOST_LIMIT
        ),
        Figure("card lost to withdrawn (worst)", max(lost), "s", "lower", LOST_LIMIT),
    ]


def _start(server: ApiServer, gpus: StubGpus) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "lockstep", "agent", "--node", NODE, "--metrics-port", "0"]
    agent = subprocess.Popen(
        [*command, "--kubeconfig", str(server.kubeconfig)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **gpus.environment()},
    )
    assert agent.stdout is not None
    line = agent.stdout.readline()
    assert line.startswith("ready"), line
    return agent, int(line.rpartition(" ")[2])


def _scrape(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return b"DCGM_FI_DEV_POWER_USAGE" in answer.read()


def _timed(port: int) -> float:
    began = time.perf_counter()
    _scrape(port)
    return time.perf_counter() - began


def _healthy(server: ApiServer) -> list[bool]:
    node: dict[str, Any] = server.request("GET", f"/api/v1/nodes/{NODE}").json
    told = node["metadata"].get("annotations", {}).get("lockstep.dev/devices", "[]")
    return [one.get("healthy", True) for one in json.loads(told)]


def _lose(server: ApiServer, gpus: StubGpus, index: int) -> float:
    """Return the seconds from a card's loss to its withdrawal; it is back afterwards."""
    time.sleep(0.13 * index)  # another moment of the agent's second each time
    began = time.perf_counter()
    gpus.card(index, {"lost": 1})
    while _healthy(server)[index]:
        time.sleep(0.005)
    took = time.perf_counter() - began
    gpus.card(index, {"lost": 0})
    while not _healthy(server)[index]:
        time.sleep(0.02)
    return took


def _cost(pid: int) -> tuple[float, float]:
    """Return a process's memory in MiB, and its share of a core in percent over a while."""
    before, began = _ticks(pid), time.perf_counter()
    time.sleep(SECONDS)
    used = (_ticks(pid) - before) / os.sysconf("SC_CLK_TCK")
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return pss / 1024, 100 * used / (time.perf_counter() - began)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
