"""How other systems ask for a share of a card: names of resources, units and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GIB: Final = 1024
"""MiB."""


@dataclass(frozen=True, slots=True)
class Words:
    """One system's way to ask for shares of NVIDIA's cards.

    ``cards`` is a number of cards, ``memory`` an amount of each in units of ``unit`` MiB,
    ``percent`` hundredths of a card's memory, ``compute`` hundredths of a card's time, and
    ``whole`` hundredths of both, over 100 for several whole cards.
    """

    dialect: str
    marks: tuple[str, ...]
    """Resources any of which means that a container is written in these words."""
    cards: str = ""
    memory: str = ""
    unit: int = 1
    percent: str = ""
    compute: str = ""
    whole: str = ""
    turns: str = ""
    """Turns on a card, of which a container has at most one; each is ``turn`` hundredths."""
    turn: int = 0
    others: tuple[str, ...] = ()
    """Resources of the system that say nothing about the share itself."""
    schedulers: tuple[str, ...] = ()
    spread: bool = False
    """Whether memory and compute over 100 are spread evenly over several cards."""
    policy: str = "fixed"
    """How compute is held where the pod does not say."""

    @property
    def all(self) -> tuple[str, ...]:
        """Return the names of all its resources."""
        named = (self.cards, self.memory, self.percent, self.compute, self.whole, self.turns)
        return tuple(dict.fromkeys(one for one in (*named, *self.others, *self.marks) if one))


HAMI: Final = Words(
    "hami",
    ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"),
    cards="nvidia.com/gpu",
    memory="nvidia.com/gpumem",
    percent="nvidia.com/gpumem-percentage",
    compute="nvidia.com/gpucores",
    others=("nvidia.com/priority",),
    schedulers=("hami-scheduler",),
    policy="burst",
)

GPUSHARE: Final = Words(
    "gpushare",
    ("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"),
    cards="aliyun.com/gpu-count",
    memory="aliyun.com/gpu-mem",
    unit=GIB,
    compute="aliyun.com/gpu-core.percentage",
    schedulers=("ack-co-scheduler",),
)

NANO_GPU: Final = Words("nano-gpu", ("nano-gpu/gpu-percent",), whole="nano-gpu/gpu-percent")

ELASTIC_GPU: Final = Words(
    "elastic-gpu",
    ("elasticgpu.io/gpu-memory", "elasticgpu.io/gpu-core"),
    memory="elasticgpu.io/gpu-memory",
    compute="elasticgpu.io/gpu-core",
    spread=True,
)

QGPU: Final = Words(
    "qgpu",
    ("tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory"),
    memory="tke.cloud.tencent.com/qgpu-memory",
    unit=GIB,
    compute="tke.cloud.tencent.com/qgpu-core",
    spread=True,
)

ELASTIC_QGPU: Final = Words(
    "qgpu",
    ("elasticgpu.io/qgpu-core", "elasticgpu.io/qgpu-memory"),
    memory="elasticgpu.io/qgpu-memory",
    unit=GIB,
    compute="elasticgpu.io/qgpu-core",
    spread=True,
)

VOLCANO_VGPU: Final = Words(
    "volcano-vgpu",
    (
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    ),
    cards="volcano.sh/vgpu-number",
    memory="volcano.sh/vgpu-memory",
    percent="volcano.sh/vgpu-memory-percentage",
    compute="volcano.sh/vgpu-cores",
    schedulers=("volcano",),
    policy="burst",
)

VOLCANO_GPU: Final = Words(
    "volcano-gpu",
    ("volcano.sh/gpu-memory",),
    memory="volcano.sh/gpu-memory",
    schedulers=("volcano",),
)

ALL: Final[tuple[Words, ...]] = (
    HAMI,
    GPUSHARE,
    NANO_GPU,
    ELASTIC_GPU,
    QGPU,
    ELASTIC_QGPU,
    VOLCANO_VGPU,
    VOLCANO_GPU,
)

FRACTION: Final = "gpu-fraction"
"""KAI's annotation of a pod: so much of a card, from 0 to 1."""
FRACTION_MEMORY: Final = "gpu-memory"
"""KAI's annotation of a pod: MiB of a card."""
FRACTION_CARDS: Final = "gpu-fraction-num-devices"
FRACTION_CONTAINER: Final = "gpu-fraction-container-name"
KAI_SCHEDULER: Final = "kai-scheduler"

SHARED: Final = "nvidia.com/gpu.shared"
"""A turn on a card that NVIDIA's device plugin splits in time, so many to a card."""

NVSHARE: Final = "nvshare.com/gpu"
UNHELD: Final[tuple[str, ...]] = (
    "amd.com/gpumem",
    "amd.com/gpucores",
    "birentech.com/vgpu",
    "cambricon.com/mlu.smlu.vcore",
    "cambricon.com/mlu.smlu.vmemory",
    "enflame.com/gcu-core",
    "enflame.com/gcu-memory",
    "huawei.com/Ascend310P-memory",
    "huawei.com/Ascend910A-memory",
    "huawei.com/Ascend910B-memory",
    "huawei.com/Ascend910B2-memory",
    "huawei.com/Ascend910B3-memory",
    "huawei.com/Ascend910B4-memory",
    "hygon.com/dcucores",
    "hygon.com/dcumem",
    "iluvatar.ai/BI-V100.vCore",
    "iluvatar.ai/BI-V150.vCore",
    "iluvatar.ai/MR-V100.vCore",
    "iluvatar.ai/MR-V50.vCore",
    "kunlunxin.com/vxpu-memory",
    "metax-tech.com/vcore",
    "metax-tech.com/vmemory",
    "mthreads.com/sgpu-core",
    "mthreads.com/sgpu-memory",
    "nvidia.com/remote-gpu",
    "nvidia.com/remote-gpu-memory",
    NVSHARE,
)
"""Shares that no part of Lockstep holds yet: of other vendors' cards, of other nodes' cards, and
of cards whose memory is swapped to the host."""
