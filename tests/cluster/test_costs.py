"""What a job costs is what its pods held: the recorder's bill against the kubelet's times."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster

Json = dict[str, Any]
JOB, GPUS, PODS = "billed", 2, 2
PRICE = 3600.0
"""Of an hour of a GPU: a second costs 1."""
NEAR = 3.0
"""Seconds: times in objects are whole ones, at both ends."""


def held(cluster: OnCluster) -> float:
    """Return for how many seconds containers held GPUs, as the kubelets tell it."""
    total = 0.0
    for pod in cluster.pods(f"lockstep.dev/job={JOB}"):
        (one,) = pod["status"]["containerStatuses"]
        ended = one["state"]["terminated"]
        first, last = (datetime.fromisoformat(ended[f"{end}At"]) for end in ("started", "finished"))
        total += (last - first).total_seconds() * GPUS
    return total


def ran(line: Json) -> float:
    """Return the seconds of GPUs while all containers of their pods ran."""
    return float(line["gpuHours"] - line["startingGpuHours"]) * 3600


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cards")
def test_cost_of_a_job_is_its_usage_times_price(cluster: OnCluster) -> None:
    spec = {"currency": "EUR", "prices": [{"gpuHour": PRICE}]}
    meta = {"name": cluster.space}
    kind = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "PriceList"}
    cluster.apply({**kind, "metadata": meta, "spec": spec})
    try:
        job = cluster_cards.gang(JOB, cluster.own_image(), PODS, GPUS)
        job["spec"]["roles"][0]["template"]["spec"]["containers"][0]["command"] = ["sleep", "15"]
        cluster.apply(job)

        def over() -> bool:
            phase = cluster.get("trainingjobs.lockstep.dev", JOB).get("status", {}).get("phase")
            assert phase != "Failed"
            return bool(phase == "Succeeded")

        cluster.wait(over, 180, "the job ends")
        wanted = held(cluster)
        assert wanted >= 15 * PODS * GPUS

        def billed() -> Json | None:
            done = cluster.lockstep("cost", "--by", "job", "-o", "json")
            assert done.returncode == 0, done.stderr
            lines = json.loads(done.stdout)["lines"]
            found = next((one for one in lines if one["job"].endswith(JOB)), None)
            return found if found and ran(found) >= wanted - NEAR * PODS * GPUS else None

        line = cluster.wait(billed, 60, "the bill has the job")
        assert ran(line) == pytest.approx(wanted, abs=NEAR * PODS * GPUS)
        assert line["cost"] == pytest.approx(line["gpuHours"] * PRICE, abs=0.5)
        assert line["unpricedGpuHours"] == 0
    finally:
        cluster.kubectl("delete", "pricelist", cluster.space)
