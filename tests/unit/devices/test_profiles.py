"""What a node is, from what the cluster knows of it."""

from __future__ import annotations

import pytest

from lockstep.devices.core.profiles import profile

NFD = "feature.node.kubernetes.io/"


@pytest.mark.parametrize(
    ("labels", "capacity", "kind", "rdma", "missing"),
    [
        pytest.param({}, {"cpu": "8"}, "cpu", False, [], id="CPUs alone"),
        pytest.param({}, {"nvidia.com/gpu": "8"}, "nvidia", False, [], id="GPUs handed out"),
        pytest.param(
            {f"{NFD}pci-0302_10de.present": "true"},
            {},
            "nvidia",
            False,
            ["NVIDIA's driver"],
            id="GPUs without a driver",
        ),
        pytest.param({}, {"amd.com/gpu": 8, "rdma/hca": "1k"}, "amd", True, [], id="AMD with RDMA"),
        pytest.param({}, {"huawei.com/Ascend910": "8"}, "npu", False, [], id="NPUs"),
        pytest.param(
            {f"{NFD}pci-0200_15b3.present": "true"}, {}, "cpu", False, ["modprobe"], id="no module"
        ),
        pytest.param({f"{NFD}rdma.available": "true"}, {}, "cpu", True, [], id="RDMA alone"),
        pytest.param({}, {"nvidia.com/gpu": "0"}, "cpu", False, [], id="none left"),
    ],
)
def test_kind_rdma_and_what_is_missing(
    labels: dict[str, str], capacity: dict[str, object], kind: str, rdma: bool, missing: list[str]
) -> None:
    found = profile(labels, capacity)
    assert (found.kind, found.rdma) == (kind, rdma)
    assert len(found.missing) == len(missing)
    assert all(word in said for word, said in zip(missing, found.missing, strict=True))
