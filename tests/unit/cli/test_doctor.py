"""What is missing on a node, and what mends it."""

from __future__ import annotations

import pytest

from lockstep.api.core import Node, NodeSpec, NodeStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.cli.doctor import has, machine, of_machine, of_node
from lockstep.devices.core.model import Card, Inventory, Port

NVIDIA = "feature.node.kubernetes.io/pci-10de.present"
LOST = '[{"index": 3, "model": "H200", "healthy": false}]'


def node(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    cordoned: bool = False,
    ready: str = "True",
    gpus: int = 0,
) -> Node:
    about = ObjectMeta(name="n1", labels=labels or {}, annotations=annotations or {})
    condition = Condition(type="Ready", status=ready, message="it said")  # type: ignore[arg-type]
    amounts = {"cpu": "8", "nvidia.com/gpu": gpus}
    status = NodeStatus(allocatable=dict(amounts), conditions=[condition])
    return Node(metadata=about, spec=NodeSpec(unschedulable=cordoned), status=status)


@pytest.mark.parametrize(
    ("given", "what", "remedy"),
    [
        (node(ready="False"), "not ready: it said", "kubectl describe node n1"),
        (node(cordoned=True), "takes no new pods", "lockstep node uncordon n1"),
        (node(labels={NVIDIA: "true"}), "offers no nvidia.com/gpu", "lockstep agent"),
        (node(annotations={"lockstep.dev/devices": LOST}), "gpu 3 (H200)", "dmesg"),
        (node(annotations={"lockstep.dev/fenced": "gpu/1"}), "pods off gpu/1", "nodehealth n1"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(given: Node, what: str, remedy: str) -> None:
    (found,) = of_node(given)
    assert what in found.what
    assert remedy in found.remedy


def test_sound_node_lacks_nothing() -> None:
    sound = node(labels={NVIDIA: "true"}, gpus=8)
    assert list(of_node(sound)) == []
    assert has(sound) == "8 cpu, 8 nvidia.com/gpu"


def test_machine_lacks_what_its_devices_need() -> None:
    card = Card(index=0, model="H200", trouble="fell off the bus")
    port = Port(index=0, name="mlx5_0", interfaces=["ib0"])
    found = Inventory(cards=[card], ports=[port])
    assert machine(found) == "1 H200 (nvidia.com/gpu), 1 RDMA port"
    assert [one.remedy.split(";")[0] for one in of_machine(found, ["grpc"])] == [
        "dmesg | tail",
        "ip link set ib0 up",
        "pip install 'lockstep[gpu]'",
    ]
    assert list(of_machine(Inventory(), [])) == []
