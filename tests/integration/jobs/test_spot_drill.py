"""A spot drill: notice, save, leave, resume elsewhere; no finished step is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.survivors import PATIENCE, SCRIPT, worker
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import LEASES, NODES
from lockstep.jobs.gathering import report_in
from lockstep.train.catalogue import Catalogue

STEPS, STOP_AT = 8, 5


class Cloud:
    """A stand-in for a machine's metadata: it answers with a text once the machine goes away."""

    def __init__(self) -> None:
        cloud = self
        self.notice = ""

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = cloud.notice.encode()
                self.send_response(200 if said else 404)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/notice"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()
    made = Cloud()
    yield made
    made.close()


@pytest.mark.soak  # torch starts four times: a minute or more on a busy machine
@pytest.mark.torch
@pytest.mark.timeout(900)
async def test_a_machine_that_goes_away_costs_no_finished_step(
    cluster: Cluster, cloud: Cloud, tmp_path: Path
) -> None:
    name, script = "spot", tmp_path / "sum.py"
    script.write_text(SCRIPT)
    (tmp_path / "go").write_text(str(STOP_AT))
    role = worker("python", str(script), str(STEPS), env=[{"name": "OUT", "value": str(tmp_path)}])
    role["template"]["spec"]["terminationGracePeriodSeconds"] = 120
    keeps = {"directory": str(tmp_path / "checkpoints"), "interval": "1h"}
    recovery = {"spotNotice": cloud.url}
    await cluster.submit(name, role, framework="pytorch", checkpoint=keeps, recovery=recovery)

    def waits() -> bool:
        files = [tmp_path / f"steps-{rank}" for rank in range(2)]
        return all(f.exists() and f"{STOP_AT - 1}" in f.read_text().split() for f in files)

    await eventually(waits, PATIENCE, "all ranks wait after a step")
    # Notice: every launcher tells of it and saves, while its ranks run on.
    cloud.notice = "spot instance: terminate in 120 s"

    async def noticed() -> bool:
        names = [f"{name}-worker-{number}" for number in range(2)]
        leases = [await cluster.client.get(LEASES, one, "default") for one in names]
        found = [report_in(lease) for lease in leases]
        return all(one is not None and one.notice == cloud.notice for one in found)

    await eventually(noticed, PATIENCE, "both launchers tell of the notice")

    def saved() -> bool:
        (books,) = [Catalogue(one) for one in (tmp_path / "checkpoints").glob("*")] or [None]
        return books is not None and any(one.step == STOP_AT for one in books.entries())

    await eventually(saved, PATIENCE, "what the ranks hold is saved")
    # Leave: the machine is tainted, and takes its pods with it.
    before = {n: p.metadata.uid for n, p in (await cluster.pods(name)).items()}
    (node,) = (await cluster.client.list(NODES)).items
    leaving = {"key": "lockstep.dev/leaving", "effect": "NoSchedule"}
    kept = [{"key": t.key, "effect": t.effect, "value": t.value} for t in node.spec.taints]
    taints = {"spec": {"taints": [*kept, leaving]}}
    await cluster.client.patch(NODES, node.metadata.name, taints)
    try:

        async def away() -> bool:
            uids = {p.metadata.uid for p in (await cluster.pods(name)).values()}
            return not uids & set(before.values())

        await eventually(away, PATIENCE, "its pods have left")
    finally:
        # Another machine comes.
        cloud.notice = ""
        await cluster.client.patch(NODES, node.metadata.name, {"spec": {"taints": kept}})
    (tmp_path / "past").touch()
    status = await cluster.reaches(name, "Succeeded", PATIENCE)
    assert status.restarts == 0, "what a cloud takes is not held against the job"
    for rank in range(2):
        printed = read_log(cluster.node, f"{name}-worker-{rank}").splitlines()
        assert f"rank {rank} starts at {STOP_AT} with {2 * STOP_AT}" in printed
        steps = (tmp_path / f"steps-{rank}").read_text().split()
        assert steps == [str(step) for step in range(STEPS)]
