"""Transformers, graphs and replicas of several pods on a control plane of this machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.served_models import READY_WITHIN, ask, condition, deploy, pods, ready
from tests.support.waiting import eventually_sync, stretched

Json = dict[str, Any]
KSERVE = "serving.kserve.io"

SERVER = """
import http.server, json, os, sys, urllib.request
host = dict(zip(sys.argv, sys.argv[1:])).get("--predictor_host")
class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if host:
            body = urllib.request.urlopen("http://" + host + self.path, body).read()
        said = {"by": os.environ["WORD"], "got": json.loads(body)}
        if os.environ.get("LWS_GROUP_SIZE"):
            said["size"] = os.environ["LWS_GROUP_SIZE"]
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("0.0.0.0", 8080), Answer).serve_forever()
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for all tests of the file."""
    running = ControlPlane(tmp_path_factory.mktemp("compose") / "up").start()
    yield running
    running.stop()


def box(word: str) -> Json:
    return {
        "name": "kserve-container",
        "image": "python",
        "command": ["python", "-c", SERVER],
        "env": [{"name": "WORD", "value": word}],
    }


def isvc(name: str, word: str, **spec: Any) -> str:
    more = spec.pop("predictor", {})
    body = {"predictor": {"containers": [box(word)], "minReplicas": 1, **more}, **spec}
    head = {"apiVersion": f"{KSERVE}/v1beta1", "kind": "InferenceService"}
    return json.dumps({**head, "metadata": {"name": name}, "spec": body})


def test_a_transformer_asks_its_predictor_through_the_router(plane: ControlPlane) -> None:
    deploy(plane, isvc("shaped", "model", transformer={"containers": [box("shaper")]}))
    ready(plane, "shaped")
    assert condition(plane, "shaped", "TransformerReady")["status"] == "True"
    assert ask(plane, "shaped", "/x", {"a": 1}) == (
        200,
        {"by": "shaper", "got": {"by": "model", "got": {"a": 1}}},
    )


def test_a_graph_asks_services_and_a_missing_one_is_named(plane: ControlPlane) -> None:
    deploy(plane, isvc("first", "one"))
    steps = [{"serviceName": "first"}, {"serviceName": "second", "data": "$response"}]
    graph = {
        "apiVersion": f"{KSERVE}/v1alpha1",
        "kind": "InferenceGraph",
        "metadata": {"name": "both"},
        "spec": {"nodes": {"root": {"routerType": "Sequence", "steps": steps}}},
    }
    deploy(plane, json.dumps(graph))
    path = f"apis/{KSERVE}/v1alpha1/namespaces/default/inferencegraphs/both"

    def told() -> Json:
        found = plane.read(path).get("status", {}).get("conditions", [])
        return found[0] if found else {}

    eventually_sync(
        lambda: "second" in told().get("message", ""), READY_WITHIN, "the missing one is named"
    )
    deploy(plane, isvc("second", "two"))
    eventually_sync(lambda: told().get("status") == "True", READY_WITHIN, "the graph is ready")
    base = plane.read(path)["status"]["url"].rpartition("/")[0]
    assert base.endswith("/serving/default")
    answer = _post(plane.read(path)["status"]["url"], {"a": 1})
    assert answer == {"by": "two", "got": {"by": "one", "got": {"a": 1}}}


def _post(url: str, body: Any) -> Any:
    import urllib.request

    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=stretched(60)) as found:  # noqa: S310
        return json.loads(found.read())


def test_a_replica_of_two_pods_starts_and_goes_together(plane: ControlPlane) -> None:
    worker = {
        "name": "worker-container",
        "image": "python",
        "command": ["python", "-c", "import time; time.sleep(1e6)"],
    }
    spec = {"workerSpec": {"pipelineParallelSize": 2, "containers": [worker]}}
    deploy(plane, isvc("several", "head", predictor=spec))
    ready(plane, "several")
    code, said = ask(plane, "several", "/x", {})
    assert (code, said["size"]) == (200, "2")
    assert len(pods(plane, "several")) == 2
    before = {one["metadata"]["uid"] for one in _pods(plane, "several")}
    worker_pod = next(name for name in pods(plane, "several") if name.endswith("-w1"))
    plane.ok("delete", f"pod/{worker_pod}")

    def anew() -> bool:
        there = {one["metadata"]["uid"] for one in _pods(plane, "several")}
        return len(there) == 2 and not there & before

    eventually_sync(anew, READY_WITHIN, "both pods were made anew")
    ready(plane, "several")


def _pods(plane: ControlPlane, name: str) -> list[Json]:
    return [
        one
        for one in plane.read("api/v1/namespaces/default/pods")["items"]
        if one["metadata"]["name"] in pods(plane, name)
    ]


def test_a_leader_worker_set_is_ready_with_its_replicas(plane: ControlPlane) -> None:
    sleep = ["python", "-c", "import time; time.sleep(1e6)"]
    sleeper = {"name": "c", "image": "python", "command": sleep}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [sleeper]}}}
    lws = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "pairs"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": template},
    }
    deploy(plane, json.dumps(lws))
    path = "apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets/pairs"
    eventually_sync(
        lambda: plane.read(path).get("status", {}).get("readyReplicas") == 1,
        READY_WITHIN,
        "the replica of two pods is ready",
    )
    assert len(pods(plane, "pairs")) == 2


def test_arenas_commands_serve_two_versions(plane: ControlPlane) -> None:
    command = f"python -c {shlex.quote(SERVER)}"
    common = ["--name=via", "--image=python", "--restful-port=8080"]
    for version in ("v1", "v2"):
        said = plane.ok(
            "arena",
            "serve",
            "custom",
            *common,
            f"--version={version}",
            f"--env=WORD={version}",
            command,
        )
        assert "submitted successfully" in said
        ready(plane, "via")
    eventually_sync(
        lambda: condition(plane, "via", "CanaryPredictorReady").get("status") == "True",
        READY_WITHIN,
        "the second version is ready",
    )
    assert {ask(plane, "via", "/x", {})[1]["by"] for _ in range(5)} == {"v1"}
    weights = ["--version-weight=v1:50", "--version-weight=v2:50"]
    plane.ok("arena", "serve", "traffic-split", "--name=via", *weights)
    eventually_sync(
        lambda: {ask(plane, "via", "/x", {})[1]["by"] for _ in range(4)} == {"v1", "v2"},
        READY_WITHIN,
        "both versions answer",
    )
    assert "via" in plane.ok("arena", "serve", "list")
    assert "via-canary-v2-00001" in plane.ok("arena", "serve", "get", "via")
    plane.ok("arena", "serve", "delete", "via")
    eventually_sync(lambda: not pods(plane, "via"), READY_WITHIN, "its replicas are gone")


def test_a_version_that_prometheus_speaks_against_is_taken_back(
    plane: ControlPlane, prometheus: str
) -> None:
    query = {"prometheus": {"address": prometheus, "query": "vector(0.9)"}}
    metric = {"name": "errors", "interval": "1s", "count": 5, "failureLimit": 1}
    metric |= {"successCondition": "result[0] < 0.1", "provider": query}
    steps = json.dumps({"steps": [{"setWeight": 5}, {"analysis": {"metrics": [metric]}}]})

    def version(word: str) -> str:
        body = json.loads(isvc("judged", word))
        body["metadata"]["annotations"] = {"lockstep.dev/release": steps}
        return json.dumps(body)

    deploy(plane, version("one"))
    ready(plane, "judged")
    deploy(plane, version("two"))
    path = f"apis/{KSERVE}/v1beta1/namespaces/default/inferenceservices/judged"

    def release() -> Json:
        told = plane.read(path)["status"]["components"]["predictor"].get("release", {})
        return dict(told)

    eventually_sync(
        lambda: release().get("phase") == "Failed", READY_WITHIN, "the version is taken back"
    )
    assert "0 good, 2 bad of 5, last [0.9]" in release()["message"]
    assert {ask(plane, "judged", "/x", {})[1]["by"] for _ in range(4)} == {"one"}
