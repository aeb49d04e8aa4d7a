"""Durable pod creations a second while twenty watchers look on, and the server's start.

The embedded server syncs every write to the disk; its peer, kube-apiserver, has an etcd that does
not. Both are asked by the same four clients over TLS and watched by the same watchers, each of
which must see every pod in order: the time ends when the last of them has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bench.figure import SAME_RUN, Figure
from bench.support.cluster import require
from bench.support.pod_storm import pod

WRITES_LIMIT = 2000.0
READY_LIMIT = 1000.0
CLIENTS = 4
WATCHERS = 20
PODS = 3000
"""Pods that each client creates."""
PEER = "kube-apiserver, etcd without fsync"


def run() -> list[Figure]:
    require("etcd", "kube-apiserver")
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory)
        with _embedded(data):
            pass
        with _embedded(data) as (pid, port, ready):
            alone = _storm(data, port, "a", 0)
            before = _cpu_seconds(pid)
            watched = _storm(data, port, "w", WATCHERS)
            spent = (_cpu_seconds(pid) - before) / (CLIENTS * PODS)
            appended = _bare_log(data)
    with tempfile.TemporaryDirectory() as directory:
        peer_ready, peer_alone, peer_watched = _peer(Path(directory))
    return [
        _figure(
            "API server ready", ready * 1000, peer_ready * 1000, PEER, unit="ms", limit=READY_LIMIT
        ),
        _figure(
            f"durable pod creations, {WATCHERS} watchers",
            watched,
            peer_watched,
            f"{PEER}, as many watchers",
            limit=WRITES_LIMIT,
        ),
        _figure(
            f"durable pod creations, {WATCHERS} watchers", watched, peer_alone, f"{PEER}, unwatched"
        ),
        _figure("durable pod creations, unwatched", alone, peer_alone, PEER, limit=WRITES_LIMIT),
        _figure("durable pod creations", alone, appended, "SQLite alone, one row a transaction"),
        Figure("server's CPU for one creation, watched", spent * 1e6, "us", "lower"),
    ]


def _figure(
    name: str,
    value: float,
    peer: float,
    peer_name: str,
    *,
    unit: str = "/s",
    limit: float | None = None,
) -> Figure:
    better: Literal["higher", "lower"] = "higher" if unit == "/s" else "lower"
    return Figure(name, value, unit, better, limit, peer=peer, peer_name=peer_name, source=SAME_RUN)


@contextmanager
def _embedded(data: Path) -> Iterator[tuple[int, int, float]]:
    """Run the embedded server; yield its PID, its port, and the seconds until it was ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "lockstep", "apiserver", "--data", str(data), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready")
        ready = time.perf_counter() - began
        url = (data / "kubeconfig").read_text().split("server: ")[1].split()[0].strip('"')
        yield server.pid, int(url.rpartition(":")[2]), ready
    finally:
        server.kill()
        server.wait()


def _peer(data: Path) -> tuple[float, float, float]:
    """Return the seconds until kube-apiserver was ready, and its creations without and with."""
    from tests.support.kube_apiserver import KubeApiServer

    server = KubeApiServer(data, installs=False)
    try:
        server.start().kill()
        began = time.perf_counter()
        server.start()
        ready = time.perf_counter() - began
        return (
            ready,
            _storm(data, server.port, "a", 0),
            _storm(data, server.port, "w", WATCHERS),
        )
    finally:
        server.kill()


def _cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, with which others on the machine do not interfere."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _storm(data: Path, port: int, name: str, watchers: int) -> float:
    """Return the creations a second, until every watcher has seen every one."""
    watching = [_start("pod_watchers", data, port, watchers, CLIENTS * PODS)] if watchers else []
    clients = [_start("pod_storm", data, port, f"{name}{n}", PODS) for n in range(CLIENTS)]
    began = time.perf_counter()
    for client in clients:
        assert client.stdin is not None
        client.stdin.close()
    assert [one.wait() for one in (*clients, *watching)] == [0] * (CLIENTS + len(watching))
    return CLIENTS * PODS / (time.perf_counter() - began)


def _start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"bench.support.{module}", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"connected\n"
    return process


def _bare_log(data: Path) -> float:
    """What SQLite does on this disk without a server: one durable row after another."""
    import sqlite3

    db = sqlite3.connect(data / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, data BLOB)")
    body = json.dumps(pod("bare")).encode()
    began = time.perf_counter()
    for revision in range(500):
        db.execute("INSERT INTO log VALUES (?, ?)", (revision, body))
    return 500 / (time.perf_counter() - began)
