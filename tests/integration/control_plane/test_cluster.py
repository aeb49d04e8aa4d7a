"""The real control plane that tests run on does what Kubernetes does."""

from __future__ import annotations

from tests.support.kube_cluster import KubeCluster
from tests.support.waiting import eventually_sync

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "schedulerName": "lockstep",
                "containers": [{"name": "main", "image": "none"}],
            },
        },
    },
}


def test_a_deployment_gets_its_pods_and_they_go_with_it(simulated_cluster: KubeCluster) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    pods = "/api/v1/namespaces/default/pods?labelSelector=app=web"
    assert simulated_cluster.request("POST", deployments, DEPLOYMENT).status == 201
    eventually_sync(
        lambda: len(simulated_cluster.request("GET", pods).json["items"]) == 3, what="three pods"
    )
    simulated_cluster.request("DELETE", f"{deployments}/web")
    eventually_sync(
        lambda: not simulated_cluster.request("GET", pods).json["items"], what="no pods"
    )
