"""A claim for a card is prepared by the DRA driver, and seen through CDI inside the container."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tools.cluster import layout

Json = dict[str, Any]
EXAMPLE = layout.ROOT / "examples/devices/claim.yaml"
SHOW = """
echo told $LOCKSTEP_DEVICES_GPU
ls /dev | grep '^nvidia[0-9]'; echo end; sleep 100000
"""


def example(image: str, name: str) -> list[Json]:
    """Return the objects of the example, whose container shows what it got."""
    template, pod = yaml.safe_load_all(EXAMPLE.read_text())
    pod["metadata"]["name"] = name
    pod["spec"]["containers"][0] |= {"image": image, "command": ["sh", "-c", SHOW]}
    return [template, pod]


def said(cluster: OnCluster, name: str) -> list[str]:
    cluster.wait(lambda: "end" in cluster.logs(name), 120, f"{name} says what it got")
    return cluster.logs(name).splitlines()


def allocated(cluster: OnCluster, pod: str) -> tuple[str, str]:
    """Return the node's pool and the device of the claim that was made for a pod."""
    named = cluster.get("pod", pod)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    (one,) = cluster.get("resourceclaim", named)["status"]["allocation"]["devices"]["results"]
    return one["pool"], one["device"]


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cards")
def test_claimed_card_is_seen_inside_and_given_once(cluster: OnCluster) -> None:
    image = cluster.own_image()
    cluster.apply(*example(image, "first"))
    told, *files, _ = said(cluster, "first")
    node, device = allocated(cluster, "first")
    number, card = int(device.rpartition("-")[2]), device.replace("gpu-", "GPU-", 1)
    assert card == cluster_cards.uuid(int(node.rpartition("-")[2]), number)
    assert told == f"told {card}"
    assert files == [f"nvidia{number}"], "the file of its own card alone"
    assert node == cluster.get("pod", "first")["spec"]["nodeName"]
    cluster.apply(*example(image, "second"))
    assert said(cluster, "second")[0] != told
    assert allocated(cluster, "second") != (node, device)
