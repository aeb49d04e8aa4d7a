"""One router beside nginx before the same server, and the model server with a model of iris."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, NotMeasured

SLOW = True
SECONDS, CONNECTIONS, RATE, RATED_SECONDS = 4, 32, 500, 6
OF_NGINX, P50_ADDED, P99_ADDED, OF_KSERVE = 0.5, 0.5, 2.0, 5.0
KSERVE_IRIS = 964.0
"""Requests a second, as KServe's own benchmark of scikit-learn states."""
FLOWER = [5.1, 3.5, 1.4, 0.2]
CONFIG = """
worker_processes 1; daemon off; pid {place}/pid; error_log {place}/log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p;
  fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  upstream back {{ server 127.0.0.1:{back}; keepalive 64; }}
  server {{ listen 127.0.0.1:{back}; keepalive_requests 1000000;
    location / {{ return 200 "ok"; }} }}
  server {{ listen 127.0.0.1:{front}; keepalive_requests 1000000;
    location / {{ proxy_pass http://back; proxy_http_version 1.1;
      proxy_set_header Connection ""; }} }}
}}
"""


def run() -> list[Figure]:
    for program in ("nginx", "wrk"):
        if shutil.which(program) is None:
            raise NotMeasured(f"needs {program}")
    with tempfile.TemporaryDirectory() as directory:
        return [*_router(Path(directory)), _model(Path(directory))]


def _router(place: Path) -> list[Figure]:
    back, front = _free(), _free()
    (place / "nginx.conf").write_text(CONFIG.format(place=place, back=back, front=front))
    with (
        _running(["nginx", "-c", str(place / "nginx.conf"), "-p", str(place)]),
        _running(
            [sys.executable, "-m", "bench.support.router_alone", str(back)], stdout=subprocess.PIPE
        ) as router,
    ):
        assert router.stdout is not None
        port = int(router.stdout.readline())
        for one in (back, front):
            _answers(one)
        path = f"http://127.0.0.1:{port}/serving/n/iris/x"
        rates = [(_wrk(path), _wrk(f"http://127.0.0.1:{front}/x")) for _ in range(3)]
        direct = asyncio.run(_latencies(back, "/x"))
        through = asyncio.run(_latencies(port, "/serving/n/iris/x"))
    ours, theirs = max(one for one, _ in rates), max(other for _, other in rates)
    added = [(_at(through, q) - _at(direct, q)) * 1000 for q in (0.5, 0.99)]
    return [
        Figure("requests/s of one router", ours, "req/s", limit=OF_NGINX * theirs).beside(
            "nginx as a proxy", theirs
        ),
        Figure(f"added at {RATE} requests/s, P50", added[0], "ms", "lower", P50_ADDED),
        Figure(f"added at {RATE} requests/s, P99", added[1], "ms", "lower", P99_ADDED),
    ]


def _model(place: Path) -> Figure:
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    inputs, classes = load_iris(return_X_y=True)
    joblib.dump(LogisticRegression(max_iter=500).fit(inputs, classes), place / "model.joblib")
    port, body = _free(), json.dumps({"instances": [FLOWER]})
    script = place / "post.lua"
    script.write_text(
        f"wrk.method = 'POST'; wrk.body = '{body}'; "
        "wrk.headers['Content-Type'] = 'application/json'"
    )
    command = [sys.executable, "-m", "lockstep.serve.server", "--framework", "sklearn"]
    options = ["--model_name", "iris", "--model_dir", str(place), "--host", "127.0.0.1"]
    with _running([*command, *options, "--http_port", str(port)]):
        _answers(port, "/v1/models/iris")
        found = _wrk(f"http://127.0.0.1:{port}/v1/models/iris:predict", "-s", str(script))
    limit = OF_KSERVE * KSERVE_IRIS
    return Figure("requests/s of the model server, iris", found, "req/s", limit=limit).beside(
        "KServe", KSERVE_IRIS, "published by KServe"
    )


@contextlib.contextmanager
def _running(
    command: list[str], stdout: int | None = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(port: int, path: str = "/x") -> None:
    """Wait until a server answers 200."""
    import http.client

    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing answers on port {port}")


def _wrk(url: str, *more: str) -> float:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", *more, url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"requests failed: {said}")
    found = re.search(r"Requests/sec:\s+([0-9.]+)", said)
    if found is None:
        raise RuntimeError(said)
    return float(found[1])


async def _latencies(port: int, path: str) -> list[float]:
    """Ask RATE times a second, over connections that stay, and return the seconds of each."""
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    found: list[float] = []

    async def ask(due: float) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        match = re.search(rb"[Cc]ontent-[Ll]ength: (\d+)", head)
        await reader.readexactly(int(match[1]) if match else 0)
        found.append(loop.time() - due)
        idle.append((reader, writer))

    loop = asyncio.get_running_loop()
    start, tasks = loop.time(), []
    for number in range(RATE * RATED_SECONDS):
        due = start + number / RATE
        await asyncio.sleep(max(0.0, due - loop.time()))
        tasks.append(asyncio.create_task(ask(loop.time())))
    await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    # What is slow at first is the making of connections.
    return found[RATE:]


def _at(values: list[float], quantile: float) -> float:
    return sorted(values)[int(len(values) * quantile)]
