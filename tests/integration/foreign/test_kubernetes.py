"""kube-controller-manager, kube-scheduler and kwok at work together on the embedded server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import kube_programs
from tests.support.apiserver import ApiServer
from tests.support.kubectl import Kubectl, need_kubectl
from tests.support.kwok_nodes import add_kwok_nodes
from tests.support.waiting import eventually_sync

Json = dict[str, Any]
NODES = 10


@pytest.fixture(scope="module")
def kubernetes(
    shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """A cluster of other people's programs, as its administrator sees it."""
    parts = (kube_programs.controller_manager, kube_programs.scheduler, kube_programs.kwok)
    programs = [part(shared_server).start() for part in parts]
    try:
        add_kwok_nodes(shared_server, NODES)
        home = tmp_path_factory.mktemp("home")
        yield Kubectl(need_kubectl(), shared_server.kubeconfig, home)
        for program in programs:
            program.require()
            said = program.log.read_text()
            assert "is forbidden: User" not in said, (
                "a program lacks a right that a cluster gives it"
            )
            assert "decode" not in said, "a program cannot read an answer"
    finally:
        for program in programs:
            program.kill()


def workload(kind: str, name: str, image: str = "x", **spec: Any) -> Json:
    """Return an object of the group apps whose pods are labelled with its name."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


def job_template(**spec: Any) -> Json:
    container = {"name": "main", "image": "x"}
    return {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}, **spec}


def pods_of(kubectl: Kubectl, name: str, *options: str) -> list[Json]:
    found = kubectl("get", "pods", "-l", f"app={name}", "-o", "json", *options)
    items: list[Json] = json.loads(found)["items"]
    return items


def test_a_deployment_of_20_is_ready_on_10_nodes(kubernetes: Kubectl) -> None:
    kubernetes("create", "deployment", "web", "--image=x", "--replicas=20")
    kubernetes("rollout", "status", "deployment/web", "--timeout=60s")
    pods = pods_of(kubernetes, "web")
    assert len(pods) == 20
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert len({pod["spec"]["nodeName"] for pod in pods}) == NODES
    kubernetes("delete", "deployment", "web", "--timeout=30s")
    eventually_sync(lambda: not pods_of(kubernetes, "web"), what="the pods are gone")


def test_a_job_of_5_completes(kubernetes: Kubectl) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "five"}}
    spec = job_template(completions=5, parallelism=5)
    kubernetes("create", "-f", "-", stdin={**job, "spec": spec})
    kubernetes("wait", "--for=condition=complete", "job/five", "--timeout=60s")
    assert kubernetes("get", "job", "five", "-o", "jsonpath={.status.succeeded}") == "5"


def test_a_stateful_set_starts_pods_in_order_and_keeps_names(kubernetes: Kubectl) -> None:
    kubernetes("create", "-f", "-", stdin=workload("StatefulSet", "db", replicas=3))
    kubernetes("rollout", "status", "statefulset/db", "--timeout=60s")
    assert [pod["metadata"]["name"] for pod in pods_of(kubernetes, "db")] == [
        "db-0",
        "db-1",
        "db-2",
    ]
    before = kubernetes("get", "pod", "db-1", "-o", "jsonpath={.metadata.uid}")
    kubernetes("delete", "pod", "db-1", "--timeout=30s")
    kubernetes("rollout", "status", "statefulset/db", "--timeout=60s")
    assert kubernetes("get", "pod", "db-1", "-o", "jsonpath={.metadata.uid}") != before


def test_a_daemon_set_has_a_pod_on_each_node(kubernetes: Kubectl) -> None:
    kubernetes("create", "-f", "-", stdin=workload("DaemonSet", "agent"))
    kubernetes("rollout", "status", "daemonset/agent", "--timeout=60s")
    nodes = [pod["spec"]["nodeName"] for pod in pods_of(kubernetes, "agent")]
    assert len(nodes) == len(set(nodes)) == NODES


def test_a_cron_job_makes_up_for_a_missed_run(kubernetes: Kubectl) -> None:
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job_template()}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly"}}
    kubernetes("create", "-f", "-", stdin={**cron, "spec": spec})
    missed = {"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}}
    kubernetes("patch", "cronjob", "yearly", "--subresource=status", "--type=merge", "-p",
               json.dumps(missed))  # fmt: skip
    owner = "jsonpath={.items[*].metadata.ownerReferences[0].name}"
    eventually_sync(lambda: "yearly" in kubernetes("get", "jobs", "-o", owner), what="a job")
    kubernetes("create", "job", "by-hand", "--from=cronjob/yearly")
    kubernetes("wait", "--for=condition=complete", "job/by-hand", "--timeout=60s")


def test_a_service_has_an_address_and_endpoints(kubernetes: Kubectl) -> None:
    kubernetes("create", "deployment", "backend", "--image=x", "--replicas=3")
    kubernetes("rollout", "status", "deployment/backend", "--timeout=60s")
    kubernetes("expose", "deployment", "backend", "--port=80", "--target-port=8080")
    assert kubernetes("get", "service", "backend", "-o", "jsonpath={.spec.clusterIP}")
    by_service = ("-l", "kubernetes.io/service-name=backend", "-o", "json")

    def addresses() -> set[str]:
        slices = json.loads(kubernetes("get", "endpointslices", *by_service))["items"]
        ready = [e for one in slices for e in one["endpoints"] if e["conditions"]["ready"]]
        return {address for endpoint in ready for address in endpoint["addresses"]}

    wanted = {pod["status"]["podIP"] for pod in pods_of(kubernetes, "backend")}
    eventually_sync(lambda: addresses() == wanted, what=f"endpoints {wanted}")
    kubernetes("delete", "deployment,service", "backend")


def test_a_rollout_is_followed_undone_and_begun_anew(kubernetes: Kubectl) -> None:
    def image() -> str:
        return kubernetes("get", "deployment", "roll", "-o", "jsonpath={..image}")

    kubernetes("create", "-f", "-", stdin=workload("Deployment", "roll", "one", replicas=3))
    for step, revision, shown in (
        (["set", "image", "deployment/roll", "main=two"], "2", "two"),
        (["rollout", "undo", "deployment/roll"], "3", "one"),
        (["rollout", "restart", "deployment/roll"], "4", "one"),
    ):
        kubernetes("rollout", "status", "deployment/roll", "--timeout=60s")
        kubernetes(*step)
        kubernetes("rollout", "status", "deployment/roll", "--timeout=60s")
        assert revision in kubernetes("rollout", "history", "deployment/roll").split()
        assert image() == shown
    assert "restartedAt" in kubernetes("rollout", "history", "deployment/roll", "--revision=4")
    kubernetes("rollout", "pause", "deployment/roll")
    kubernetes("set", "image", "deployment/roll", "main=three")
    assert len(kubernetes("get", "rs", "-l", "app=roll", "-o", "name").split()) == 3
    kubernetes("rollout", "resume", "deployment/roll")
    kubernetes("rollout", "status", "deployment/roll", "--timeout=60s")
    kubernetes("delete", "deployment", "roll")


def test_a_node_is_drained_and_taken_back(kubernetes: Kubectl) -> None:
    kubernetes("create", "deployment", "moves", "--image=x", "--replicas=5")
    kubernetes("rollout", "status", "deployment/moves", "--timeout=60s")
    node = pods_of(kubernetes, "moves")[0]["spec"]["nodeName"]
    kubernetes("drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    assert "SchedulingDisabled" in kubernetes("get", "node", node)
    kubernetes("rollout", "status", "deployment/moves", "--timeout=60s")
    assert node not in {pod["spec"]["nodeName"] for pod in pods_of(kubernetes, "moves")}
    kubernetes("uncordon", node)
    kubernetes("delete", "deployment", "moves")


def test_an_untolerated_taint_evicts_a_pod(kubernetes: Kubectl) -> None:
    kubernetes("create", "deployment", "flees", "--image=x")
    kubernetes("rollout", "status", "deployment/flees", "--timeout=60s")
    (pod,) = pods_of(kubernetes, "flees")
    node = pod["spec"]["nodeName"]
    kubernetes("taint", "node", node, "fire=yes:NoExecute")
    eventually_sync(
        lambda: {p["spec"].get("nodeName", node) for p in pods_of(kubernetes, "flees")}.isdisjoint(
            {node}
        ),
        what=f"no pod on {node}",
    )
    kubernetes("taint", "node", node, "fire-")
    kubernetes("delete", "deployment", "flees")


@pytest.mark.parametrize(
    ("cascade", "kept"), [("background", False), ("foreground", False), ("orphan", True)]
)
def test_what_is_owned_goes_or_stays_as_asked(
    kubernetes: Kubectl, cascade: str, kept: bool
) -> None:
    kubernetes("create", "deployment", cascade, "--image=x", "--replicas=2")
    kubernetes("rollout", "status", f"deployment/{cascade}", "--timeout=60s")
    kubernetes("delete", "deployment", cascade, f"--cascade={cascade}", "--timeout=30s")
    sets = ("get", "rs", "-l", f"app={cascade}", "-o", "json")
    if kept:
        (left,) = json.loads(kubernetes(*sets))["items"]
        assert "ownerReferences" not in left["metadata"]
        assert len(pods_of(kubernetes, cascade)) == 2
        kubernetes("delete", "rs", "-l", f"app={cascade}")
    eventually_sync(lambda: not pods_of(kubernetes, cascade), what="the pods are gone")
    eventually_sync(lambda: not json.loads(kubernetes(*sets))["items"], what="the set is gone")


def test_a_namespace_goes_with_all_its_workloads(kubernetes: Kubectl) -> None:
    kubernetes("create", "namespace", "doomed")
    for kind in ("Deployment", "StatefulSet"):
        kubernetes("-n", "doomed", "create", "-f", "-", stdin=workload(kind, kind.lower()))
    kubernetes("-n", "doomed", "rollout", "status", "deployment/deployment", "--timeout=60s")
    kubernetes("delete", "namespace", "doomed", "--timeout=60s")
    assert kubernetes("get", "pods,rs,deploy,sts", "-n", "doomed") == ""


def test_a_quota_holds_a_deployment_back_until_there_is_room(kubernetes: Kubectl) -> None:
    kubernetes("create", "namespace", "small")
    small = ("-n", "small")
    kubernetes(*small, "create", "quota", "three", "--hard=pods=3,count/deployments.apps=1")
    kubernetes(*small, "create", "-f", "-", stdin=workload("Deployment", "five", replicas=5))

    def ready() -> str:
        return kubernetes(
            *small, "get", "deployment", "five", "-o", "jsonpath={.status.readyReplicas}"
        )

    eventually_sync(lambda: ready() == "3", what="three pods")
    said = kubernetes(*small, "get", "rs", "-o", "jsonpath={..conditions[0].message}")
    assert "exceeded quota: three, requested: pods=1, used: pods=3, limited: pods=3" in said
    refused = kubernetes(*small, "create", "deployment", "more", "--image=x", fails=True)
    assert "exceeded quota: three, requested: count/deployments.apps=1" in refused
    described = kubernetes(*small, "describe", "quota", "three").split()
    assert described[-3:] == ["pods", "3", "3"]
    more = json.dumps({"spec": {"hard": {"pods": "9"}}})
    kubernetes(*small, "patch", "quota", "three", "--type=merge", "-p", more)
    eventually_sync(lambda: ready() == "5", 90, what="all five pods")
    kubernetes("delete", "namespace", "small", "--timeout=60s")


def test_metrics_that_nobody_serves_are_said_to_be_missing(kubernetes: Kubectl) -> None:
    assert "Metrics API not available" in kubernetes("top", "nodes", fails=True)
