"""Operations that run by the clock: each time a pod of its own, and none before its time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

pytest.importorskip("obstore", reason="needs the data extra")
FLUID = "apis/data.fluid.io/v1alpha1/namespaces/default"


def fluid(kind: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": "set", "namespace": "default"}
    return {"apiVersion": "data.fluid.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_a_scheduled_backup_runs_each_minute(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for place in (source, target):
        place.mkdir()
        place.chmod(0o777)
    (source / "a").write_text("here")
    plane = ControlPlane(tmp_path / "up").start()
    try:
        mount = {"mountPoint": f"local://{source}", "name": "x", "path": "/"}
        minutely = {"policy": "Cron", "schedule": "* * * * *"}
        objects = [
            fluid("Dataset", mounts=[mount]),
            fluid("AlluxioRuntime", replicas=1),
            fluid("DataBackup", dataset="set", backupPath=f"local://{target}", **minutely),
        ]
        plane.ok("submit", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))

        def pod_of(before: str) -> str:
            status = plane.read(f"{FLUID}/databackups/set").get("status", {})
            name = str(status.get("infos", {}).get("pod", ""))
            return name if status.get("phase") == "Complete" and name != before else ""

        first = eventually_sync(lambda: pod_of(""), 120, "the first run is over")
        eventually_sync(lambda: pod_of(first), 120, "the second run is over")
        pods = {one["metadata"]["name"] for one in plane.read("api/v1/pods")["items"]}
        assert first not in pods
        [file] = target.iterdir()
        assert json.loads(gzip.decompress(file.read_bytes()))["path"] == "a"
    finally:
        plane.stop()
