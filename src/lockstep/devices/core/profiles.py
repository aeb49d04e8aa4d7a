"""What a node is by what the cluster knows: accelerators, RDMA, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["cpu", "nvidia", "amd", "npu"]
PROFILE_LABEL: Final = "lockstep.dev/profile"
RDMA_LABEL: Final = "lockstep.dev/rdma"

_PCI: Final[Mapping[str, Kind]] = {"10de": "nvidia", "1002": "amd", "19e5": "npu", "1da3": "npu"}
_RESOURCES: Final[tuple[tuple[str, Kind], ...]] = (
    ("nvidia.com/", "nvidia"),
    ("amd.com/gpu", "amd"),
    ("huawei.com/", "npu"),
    ("habana.ai/", "npu"),
)
_MARKS: Final[Mapping[str, Kind]] = {
    "nvidia.com/gpu.present": "nvidia",
    "amd.com/gpu.present": "amd",
}
_MELLANOX: Final = "15b3"
TAINTS: Final[Mapping[Kind, str]] = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""Keys of the taints that keep others off nodes with cards, named after what is handed out there:
Kubernetes' admission plugin ExtendedResourceToleration lets the pods that ask for it through."""
TAINTED: Final = "lockstep"
"""Value of the taints that are ours."""
_INSTALL: Final[Mapping[str, str]] = {
    "nvidia": "NVIDIA's driver and container toolkit (the GPU operator brings both)",
    "amd": "AMD's driver (amdgpu-dkms) and device plugin",
    "npu": "the vendor's driver and device plugin",
}


@dataclass(frozen=True, slots=True)
class Profile:
    """A node's kind, whether it has RDMA, and what is missing with how to get it."""

    kind: Kind
    rdma: bool
    missing: tuple[str, ...] = ()

    @property
    def labels(self) -> dict[str, str | None]:
        """Return the labels that say so; None takes one off."""
        return {
            PROFILE_LABEL: self.kind,
            RDMA_LABEL: "true" if self.rdma else None,
        }


def profile(labels: Mapping[str, str], capacity: Mapping[str, object]) -> Profile:
    """Return what a node is by its labels (also node feature discovery's) and its capacity."""
    seen = {kind for part, kind in _PCI.items() if _has_card(labels, part)}
    seen |= {kind for mark, kind in _MARKS.items() if labels.get(mark) == "true"}
    handed = {
        kind
        for name, amount in capacity.items()
        for prefix, kind in _RESOURCES
        if name.startswith(prefix) and str(amount) not in ("", "0")
    }
    kinds = sorted(handed | seen, key=("nvidia", "amd", "npu").index)
    kind: Kind = kinds[0] if kinds else "cpu"
    missing = []
    if kind != "cpu" and kind not in handed:
        missing.append(f"its {kind} cards are not handed out: install {_INSTALL[kind]}")
    if len(kinds) > 1:
        missing.append(f"it has cards of {', '.join(kinds)}; the agent serves {kind}")
    network, rdma = _has_network_card(labels), _rdma(labels, capacity)
    if network and not rdma:
        missing.append("its NICs could do RDMA and no module is loaded: modprobe mlx5_ib ib_uverbs")
    return Profile(kind, rdma, tuple(missing))


def _has_card(labels: Mapping[str, str], vendor: str) -> bool:
    """Tell by node feature discovery's labels whether there is a display or processing card."""
    classes = ("", "0300_", "0302_", "0380_", "1200_")
    return any(
        labels.get(f"feature.node.kubernetes.io/pci-{one}{vendor}.present") == "true"
        for one in classes
    )


def _has_network_card(labels: Mapping[str, str]) -> bool:
    return any(
        labels.get(f"feature.node.kubernetes.io/pci-{one}{_MELLANOX}.present") == "true"
        for one in ("", "0200_", "0207_")
    )


def _rdma(labels: Mapping[str, str], capacity: Mapping[str, object]) -> bool:
    stated = ("rdma.available", "rdma.capable")
    if labels.get(f"feature.node.kubernetes.io/{stated[0]}") == "true":
        return True
    return any(
        name.startswith(("rdma/", "lockstep.dev/nics")) and str(amount) not in ("", "0")
        for name, amount in capacity.items()
    )
