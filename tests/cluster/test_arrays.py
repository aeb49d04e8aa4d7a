"""A job array of 200 pods runs to its end on three nodes."""

from __future__ import annotations

import json

from tests.support.on_cluster import OnCluster

SIZE = 200


def test_array_of_200_jobs_succeeds(cluster: OnCluster) -> None:
    done = cluster.lockstep(
        *("submit", "plain", "--name", "sweep", "--array", f"0-{SIZE - 1}", "--no-launcher"),
        *("--image", cluster.lockstep_image(), "--", "true"),
    )
    assert done.returncode == 0, done.stderr

    def succeeded() -> bool:
        jobs = json.loads(cluster.kubectl("get", "trainingjobs.lockstep.dev", "-o", "json"))[
            "items"
        ]
        phases = [job.get("status", {}).get("phase") for job in jobs]
        assert "Failed" not in phases
        return phases.count("Succeeded") == SIZE

    cluster.wait(succeeded, 600, f"{SIZE} jobs succeed")
