"""A real Prometheus in the cluster scrapes the agents; an alarm of ours fires there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tests.support.stub_gpus import StubGpus
from tools.prometheus import build

Json = dict[str, Any]
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
RBAC = "rbac.authorization.k8s.io"
AGENTS = 9401
"""The port of agents' metrics, of the chart's values."""


def config(targets: list[str]) -> Json:
    """Return a configuration as docs/metrics.md has it, but for how often it looks."""
    job = {
        "job_name": "agents",
        "scheme": "https",
        "authorization": {"credentials_file": TOKEN},
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": [{"targets": targets}],
    }
    return {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": ["/etc/prometheus/alarms.yaml"],
        "scrape_configs": [job],
    }


def reader(space: str) -> Json:
    """Return what lets the story's Prometheus read metrics."""
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "lockstep-metrics-reader"}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{space}-reads-metrics"},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": space}],
    }


def server(cluster: OnCluster, program: Path) -> list[Json]:
    """Return a Prometheus that may find the agents and read their metrics."""
    alarms = (sys.executable, "-m", "lockstep", "manifests", "alarms")
    done = subprocess.run(alarms, capture_output=True, text=True, check=True)
    agents = [f"{node.address}:{AGENTS}" for node in cluster.cluster.record.all_nodes]
    files = {"prometheus.yaml": json.dumps(config(agents)), "alarms.yaml": done.stdout}
    main = {
        "name": "prometheus",
        "image": cluster.own_image(),
        "command": [str(program), "--config.file=/etc/prometheus/prometheus.yaml"],
        "args": ["--storage.tsdb.path=/data", "--web.listen-address=:9090"],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/prometheus"},
            {"name": "data", "mountPath": "/data"},
            {"name": "program", "mountPath": str(program.parent), "readOnly": True},
        ],
    }
    volumes = [
        {"name": "config", "configMap": {"name": "prometheus"}},
        {"name": "data", "emptyDir": {}},
        {"name": "program", "hostPath": {"path": str(program.parent)}},
    ]
    spec = {
        "serviceAccountName": "prometheus",
        "terminationGracePeriodSeconds": 1,
        "containers": [main],
        "volumes": volumes,
    }
    meta = {"name": "prometheus"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": files},
        reader(cluster.space),
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
    ]


def query(cluster: OnCluster, expression: str) -> list[dict[str, str]]:
    """Return the labels of each series that an expression gives now."""
    asked = urllib.parse.urlencode({"query": expression})
    place = f"/api/v1/namespaces/{cluster.space}/pods/prometheus:9090/proxy"
    answer = json.loads(cluster.kubectl("get", "--raw", f"{place}/api/v1/query?{asked}"))
    return [one["metric"] for one in answer["data"]["result"]]


@pytest.mark.timeout(900)
def test_prometheus_sees_whose_cards_and_an_alarm_fires(
    cluster: OnCluster, cards: dict[str, StubGpus]
) -> None:
    program = build.PROMETHEUS.find() or shutil.which("prometheus")
    if program is None:
        pytest.skip("no Prometheus: run `make prometheus`")
    held = cluster_cards.gang("metered", cluster.own_image(), 2, 2, strategy="Spread")
    cluster.apply(*server(cluster, Path(program)), held)
    cluster.kubectl("wait", "pod/prometheus", "--for=condition=Ready", "--timeout=240s")
    used = f'DCGM_FI_DEV_FB_USED{{namespace="{cluster.space}",lockstep_job="metered"}}'
    found = cluster.wait(lambda: len(f := query(cluster, used)) == 4 and f, 120, "four cards")
    assert {one["rank"] for one in found} == {"0", "1"}
    assert {one["queue"] for one in found} == {"default"}
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.pods()}
    assert all(nodes[one["pod"]] == one["hostname"] for one in found)
    everything = "count by (hostname) (DCGM_FI_DEV_FB_USED) == 8"
    assert {one["hostname"] for one in query(cluster, everything)} == set(cards)
    ill = found[0]["hostname"]
    for _ in range(3):  # on a cluster that is kept, an earlier run may have told the first ones
        cards[ill].xid(3, 13)
    alarm = 'ALERTS{alertname="GPUXid",alertstate="firing"}'
    (fired,) = cluster.wait(lambda: query(cluster, alarm), 60, "the alarm fires")
    assert (fired["hostname"], fired["gpu"], fired["severity"]) == (ill, "3", "warning")
