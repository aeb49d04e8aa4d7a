"""An inference service answers pods by its name: from zero, and while replicas and routers die."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
import yaml
from tests.support.on_cluster import OnCluster

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.compat import dialects

Json = dict[str, Any]
ROUTERS = "app.kubernetes.io/component=router"
SERVE = """
import http.server, os, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (os.environ.get("WORD") or os.uname().nodename).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("", 8080), Answer).serve_forever()
"""
ASK = """
import sys, time, urllib.request
url, most = sys.argv[1], int(sys.argv[2])
for n in range(1, most + 1):
    with urllib.request.urlopen(url, timeout=180) as answer:
        print("answer", n, answer.status, answer.read().decode(), flush=True)
    time.sleep(0.05)
"""
PATIENT = """
import sys, time, urllib.request
while True:
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
            print("answer", time.time(), answer.status, answer.read().decode(), flush=True)
    except OSError as error:
        print("answer", time.time(), type(error).__name__, flush=True)
    time.sleep(0.1)
"""
LOST_SECONDS = 120.0
"""Kubernetes alone takes the pods of a lost node away after 300."""


@pytest.fixture(scope="module")
def image(installed: OnCluster) -> str:
    """Lockstep's own image, which has Python; the kinds of services are there."""
    kinds = yaml.safe_dump_all(dialects.manifests(["kserve"]))
    installed.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=kinds)
    return installed.own_image()


def python(image: str, name: str, script: str, *words: str) -> Json:
    command = ["/opt/lockstep/bin/python", "-c", script, *words]
    return {"name": name, "image": image, "command": command}


def service(image: str, replicas: int, word: str = "", **predictor: Any) -> Json:
    server = python(image, "kserve-container", SERVE)
    server["env"] = [{"name": "WORD", "value": word}]
    server["ports"] = [{"containerPort": 8080}]
    server["readinessProbe"] = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "echo"},
        "spec": {"predictor": {"minReplicas": replicas, "containers": [server], **predictor}},
    }


def client(image: str, url: str, requests: int) -> Json:
    ask = python(image, "main", ASK, url, str(requests))
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [ask]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": spec}


def answers(cluster: OnCluster) -> list[str]:
    return [one for one in cluster.logs("client").splitlines() if one.startswith("answer")]


@pytest.mark.timeout(600)
def test_the_first_request_starts_a_replica_and_is_answered(cluster: OnCluster, image: str) -> None:
    cluster.apply(service(image, 0))
    name = cluster.wait(
        lambda: cluster.get("service", "echo").get("spec", {}).get("externalName"),
        120,
        "the service has a name",
    )
    assert name == f"lockstep-router.{SYSTEM_NAMESPACE}.svc.cluster.local"
    cluster.wait(lambda: not cluster.pods("lockstep.dev/route=echo"), 300, "nothing asks it: zero")
    cluster.apply(client(image, f"http://echo.{cluster.space}/", 1))
    cluster.wait(lambda: answers(cluster), 240, "the request is answered")
    (replica,) = cluster.pods("lockstep.dev/route=echo")
    assert answers(cluster) == [f"answer 1 200 {replica['metadata']['name']}"]


@pytest.mark.timeout(600)
def test_requests_outlive_a_replica_and_a_router(cluster: OnCluster, image: str) -> None:
    cluster.apply(service(image, 2))

    def ready() -> bool:
        found = cluster.pods("lockstep.dev/route=echo")
        states = [one["status"].get("containerStatuses", [{}])[0].get("ready") for one in found]
        return states == [True, True]

    cluster.wait(ready, 240, "two replicas are ready")
    cluster.apply(client(image, f"http://echo.{cluster.space}/", 100_000))
    cluster.wait(lambda: len(answers(cluster)) > 20, 120, "requests are answered")
    first, _ = cluster.pods("lockstep.dev/route=echo")
    cluster.kubectl("delete", "pod", first["metadata"]["name"], "--wait=false")
    words = ("-n", SYSTEM_NAMESPACE, "get", "pods", "-l", ROUTERS, "-o", "name")
    router, *_ = cluster.cluster.kubectl(*words).split()
    cluster.cluster.kubectl("-n", SYSTEM_NAMESPACE, "delete", router, "--wait=false")
    before = len(answers(cluster))
    cluster.wait(lambda: len(answers(cluster)) > before + 100, 120, "requests go on")
    assert cluster.get("pod", "client")["status"]["phase"] == "Running"
    assert {one.split()[2] for one in answers(cluster)} == {"200"}


@pytest.mark.timeout(600)
def test_canary_gets_its_share_until_it_is_rolled_out(cluster: OnCluster, image: str) -> None:
    cluster.apply(service(image, 1, "old"), client(image, f"http://echo.{cluster.space}/", 100_000))
    cluster.wait(lambda: len(answers(cluster)) > 20, 240, "requests are answered")
    for percent in (25, 100):
        cluster.apply(service(image, 1, "new", canaryTrafficPercent=percent))

        def share() -> float:
            last = [one.split()[3] for one in answers(cluster)[-200:]]
            return last.count("new") / len(last) * 100

        cluster.wait(lambda p=percent, s=share: abs(s() - p) <= 2, 240, f"the new has {percent} %")
    assert {one.split()[2] for one in answers(cluster)} == {"200"}
    status = cluster.get("inferenceservice", "echo")["status"]["components"]["predictor"]
    assert status["latestRolledoutRevision"] == status["latestReadyRevision"]


def replicas(cluster: OnCluster) -> dict[str, str]:
    """Return the nodes of the replicas that are ready and stay."""
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in cluster.pods("lockstep.dev/route=echo")
        if "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("containerStatuses", [{}])[0].get("ready")
    }


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("cards")
def test_service_answers_again_after_its_node_is_lost(cluster: OnCluster, image: str) -> None:
    spread = service(image, 2)
    (server,) = spread["spec"]["predictor"]["containers"]
    server["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    cluster.apply(spread)
    cluster.wait(lambda: len(replicas(cluster)) == 2, 240, "two replicas are ready")
    nodes = sorted(replicas(cluster).values())
    assert len(set(nodes)) == 2, "the cards of a replica fill a node"
    lost = nodes[0]
    (other,) = {node.name for node in cluster.cluster.record.all_nodes} - set(nodes)
    pod = client(image, f"http://echo.{cluster.space}/", 0)
    pod["spec"]["nodeName"] = other
    pod["spec"]["containers"] = [
        python(image, "main", PATIENT, f"http://echo.{cluster.space}.svc/")
    ]
    cluster.apply(pod)
    cluster.wait(lambda: len(answers(cluster)) > 20, 120, "requests are answered")
    stopped = time.time()
    cluster.cluster.stop_node(lost)

    def well() -> bool:
        last = [one.split() for one in answers(cluster)[-100:]]
        since = float(last[0][1])
        return since > stopped and {one[2] for one in last} == {"200"}

    cluster.wait(well, LOST_SECONDS, "100 requests in a row are answered")

    def whole() -> bool:
        nodes = replicas(cluster).values()
        return len(nodes) == 2 and lost not in nodes

    cluster.wait(whole, LOST_SECONDS, "two replicas stand on the nodes that are left")
    good = [float(one.split()[1]) for one in answers(cluster) if one.split()[2] == "200"]
    gap = max(later - sooner for sooner, later in pairwise(good))
    print(f"node stopped: the longest time without an answer {gap:.1f} s")
