"""Uninstalling leaves kinds and their objects, and nothing that holds pods or namespaces up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tools.cluster import install

HOLDERS = (
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "csidrivers",
)


@pytest.fixture
def uninstalled(cluster: OnCluster) -> Iterator[OnCluster]:
    """The cluster with a job of Lockstep that runs, after Helm took Lockstep away."""
    cluster.apply(cluster_cards.gang("left", cluster.own_image(), 2, 0))
    cluster.wait(lambda: running(cluster) == 2, 120, "the job runs")
    install.run(
        cluster.cluster,
        *("uninstall", install.RELEASE, "--namespace", install.NAMESPACE, "--wait"),
    )
    yield cluster
    cluster_cards.put(cluster.cluster)
    install.install(cluster.cluster, *cluster_cards.options())


def running(cluster: OnCluster) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in cluster.pods())


@pytest.mark.timeout(900)
def test_uninstalled_cluster_runs_pods_and_deletes_namespaces(uninstalled: OnCluster) -> None:
    left = uninstalled.kubectl("get", ",".join(HOLDERS), "-o", "name").split()
    assert [one for one in left if "lockstep" in one] == []
    assert running(uninstalled) == 2, "what ran runs on"
    main = {"name": "main", "image": uninstalled.idle_image}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}}
    uninstalled.apply({**pod, "spec": {"containers": [main]}})
    uninstalled.wait(lambda: running(uninstalled) == 3, 60, "a pod of nobody starts")
    assert uninstalled.get("trainingjobs.lockstep.dev", "left"), "kinds and objects stay"
    uninstalled.kubectl("delete", "namespace", uninstalled.space, "--timeout=120s")
    assert not uninstalled.get("namespace", uninstalled.space)
