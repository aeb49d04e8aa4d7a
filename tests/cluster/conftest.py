"""One cluster of three nodes for all stories, with Lockstep installed from the sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import cluster_cards, cluster_training, stub_gpus
from tests.support.on_cluster import OnCluster
from tests.support.stub_gpus import StubGpus
from tools.cluster import cluster as clusters
from tools.cluster import install
from tools.cluster.cluster import MachineLacks

NAME = "LOCKSTEP_TEST_CLUSTER"
"""Variable with the name of a cluster that is kept, for those who write stories."""
HERE = Path(__file__).parent
GPUS = 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def bare_cluster() -> Iterator[clusters.Cluster]:
    """A cluster on which nothing is installed yet."""
    name = os.environ.get(NAME, "")
    stub_gpus.build()  # before nodes mount it: one that is built anew is another file
    try:
        found, _ = clusters.up(name or "tests", gpus=GPUS)
    except MachineLacks as error:
        pytest.skip(f"no cluster: {error}")
    yield found
    if name:
        OnCluster(found).heal()
    else:
        clusters.down(found.record.name)


@pytest.fixture(scope="session")
def installed(bare_cluster: clusters.Cluster) -> OnCluster:
    """The cluster with every part of Lockstep Ready."""
    cluster_cards.put(bare_cluster)
    install.install(bare_cluster, *cluster_cards.options())
    return OnCluster(bare_cluster, idle_image=bare_cluster.record.pause)


@pytest.fixture
def cluster(installed: OnCluster) -> Iterator[OnCluster]:
    """The cluster, with a namespace for this test alone; nodes that another stopped run again."""
    installed.heal()
    with installed.namespace():
        yield installed


@pytest.fixture(scope="session")
def torch_image(installed: OnCluster) -> str:
    """The name of an image with torch, in the cluster's registry."""
    return cluster_training.image(installed)


@pytest.fixture
def training(cluster: OnCluster, torch_image: str) -> OnCluster:
    """Three ranks that step, on three nodes."""
    cluster_training.submit(cluster, torch_image)
    return cluster


@pytest.fixture
def cards(cluster: OnCluster) -> dict[str, StubGpus]:
    """The cards of each node, which the kubelets hand out."""
    found = cluster_cards.put(cluster.cluster)

    def offered() -> bool:
        given = [cluster_cards.allocatable(cluster.cluster, node) for node in found]
        return given == [str(GPUS)] * len(found)

    cluster.wait(offered, 120, "every kubelet has eight cards to give")
    for one in found.values():
        one.world.chmod(0o666)  # the agent made it; tenants are other users
    return found
