"""From nothing to the first answer on a whole control plane, beside a bare start of the server."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from bench.figure import Figure

SLOW = True
ROUNDS, MORE = 3, 300.0
"""How often it is woken, and how many milliseconds that may take beyond the server's own start."""
FLOWER = {"instances": [[5.1, 3.5, 1.4, 0.2]]}
ISVC = "apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices/iris"


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        _train(place / "iris")
        bare = statistics.median(_bare(place / "iris") for _ in range(ROUNDS))
        woken = _woken(place)
    figure = Figure("0 to 1: first answer, median of 3", woken, "ms", "lower", bare + MORE)
    return [figure.beside("bare start of the server", bare)]


def _train(place: Path) -> None:
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    place.mkdir(mode=0o755)
    model = LogisticRegression(max_iter=500).fit(*load_iris(return_X_y=True))
    joblib.dump(model, place / "model.joblib")


def _bare(model: Path) -> float:
    """Return the milliseconds from the start of the server to its first answer."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    options = ["--framework", "sklearn", f"--model_dir={model}", f"--http_port={port}"]
    options += ["--model_name=iris", "--grpc_port=0", "--host=127.0.0.1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    since = time.monotonic()
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "lockstep.serve.server", *options],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                _ask(f"http://127.0.0.1:{port}")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.002)
            else:
                return (time.monotonic() - since) * 1000
    finally:
        server.terminate()
        server.wait(20)


def _ask(base: str) -> Any:
    request = urllib.request.Request(  # noqa: S310 - an address of this machine
        f"{base}/v1/models/iris:predict", json.dumps(FLOWER).encode()
    )
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
        return json.loads(answer.read())


def _woken(place: Path) -> float:
    """Return the milliseconds from a request to its answer, where no replica was there."""
    from tests.support.control_plane import ControlPlane

    annotations = {
        "autoscaling.knative.dev/window": "6s",
        "autoscaling.knative.dev/scale-to-zero-pod-retention-period": "0s",
    }
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"file://{place / 'iris'}"}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": 0, "model": model}},
    }
    plane = ControlPlane(place / "up").start()
    try:
        plane.ok("submit", "-f", "-", stdin=json.dumps(service))
        found = []
        for _ in range(ROUNDS):
            _until(lambda: plane.read(ISVC).get("status", {}).get("url"))
            _until(lambda: _state(plane.read(ISVC)) == "Standby")
            url = plane.read(ISVC)["status"]["url"]
            since = time.monotonic()
            _ask(url)
            found.append((time.monotonic() - since) * 1000)
        return statistics.median(found)
    finally:
        plane.stop()


def _state(service: Any) -> str:
    states = service.get("status", {}).get("modelStatus", {}).get("states", {})
    return str(states.get("targetModelState", ""))


def _until(true: Any) -> None:
    end = time.monotonic() + 180
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("the service did not get there in 180 s")
        time.sleep(0.2)
