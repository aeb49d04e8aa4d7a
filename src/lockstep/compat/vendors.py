"""Accelerators of all vendors: how they are recognised and what their users call them.

Resource names and variables are those of the vendors' own device plugins. Which rows were tried on
hardware is said in ``docs/devices.md``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor's accelerators.

    ``pci`` is the vendor's number, ``devices`` the numbers of its devices (all of the classes
    when empty), ``nodes`` the device files of card number ``{n}``, ``shared`` those that every
    container needs, ``visible`` the variable that names a container's cards.
    """

    name: str
    resource: str
    pci: int
    nodes: tuple[str, ...]
    shared: tuple[str, ...] = ()
    visible: str = ""
    devices: tuple[int, ...] = ()
    unit: str = "card"


# Display controllers, 3D controllers, other display, processing accelerators, co-processors.
CLASSES = (0x0300, 0x0302, 0x0380, 0x1200, 0x0B40)

_DRI = ("/dev/dri/{render}", "/dev/dri/{card}")
_ASCEND = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
VENDORS = (
    Vendor(
        "nvidia",
        "nvidia.com/gpu",
        0x10DE,
        ("/dev/nvidia{n}",),
        ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"),
        "NVIDIA_VISIBLE_DEVICES",
    ),
    Vendor("amd", "amd.com/gpu", 0x1002, _DRI, ("/dev/kfd",), "ROCR_VISIBLE_DEVICES"),
    Vendor(
        "ascend",
        "huawei.com/Ascend910",
        0x19E5,
        ("/dev/davinci{n}",),
        _ASCEND,
        "ASCEND_VISIBLE_DEVICES",
        (0xD801, 0xD802, 0xD803),
    ),
    Vendor(
        "ascend-310p",
        "huawei.com/Ascend310P",
        0x19E5,
        ("/dev/davinci{n}",),
        _ASCEND,
        "ASCEND_VISIBLE_DEVICES",
        (0xD500,),
    ),
    Vendor(
        "cambricon",
        "cambricon.com/mlu",
        0xCABC,
        ("/dev/cambricon_dev{n}",),
        ("/dev/cambricon_ctl",),
        "MLU_VISIBLE_DEVICES",
    ),
    Vendor(
        "hygon", "hygon.com/dcu", 0x1D94, _DRI, ("/dev/kfd", "/dev/mkfd"), "HIP_VISIBLE_DEVICES"
    ),
    Vendor(
        "iluvatar",
        "iluvatar.com/gpu",
        0x1E3E,
        ("/dev/iluvatar{n}",),
        (),
        "ILUVATAR_COREX_VISIBLE_DEVICES",
    ),
    Vendor("metax", "metax-tech.com/gpu", 0x9999, _DRI, ("/dev/mxcd",), "METAX_VISIBLE_DEVICES"),
    Vendor(
        "mthreads", "mthreads.com/gpu", 0x1ED5, ("/dev/mtgpu.{n}",), (), "MTHREADS_VISIBLE_DEVICES"
    ),
    Vendor(
        "enflame",
        "enflame.com/gcu",
        0x1E36,
        ("/dev/gcu{n}",),
        ("/dev/gcuctl",),
        "ENFLAME_VISIBLE_DEVICES",
    ),
    Vendor(
        "kunlunxin",
        "kunlunxin.com/xpu",
        0x1D22,
        ("/dev/xpu{n}",),
        ("/dev/xpuctrl",),
        "XPU_VISIBLE_DEVICES",
        (0x3684, 0x3685),
    ),
    Vendor(
        "neuron",
        "aws.amazon.com/neurondevice",
        0x1D0F,
        ("/dev/neuron{n}",),
        (),
        "AWS_NEURON_VISIBLE_DEVICES",
        (0x7064, 0x7164, 0x7264, 0x7364),
    ),
    Vendor(
        "vastai",
        "vastaitech.com/va",
        0x1EC6,
        ("/dev/va{n}",),
        ("/dev/va_sync",),
        "VASTAI_VISIBLE_DEVICES",
    ),
    Vendor(
        "biren",
        "birentech.com/gpu",
        0x1EE0,
        ("/dev/biren/card_{n}",),
        ("/dev/biren-m",),
        "BIREN_VISIBLE_DEVICES",
    ),
)


def recognise(vendor: int, device: int, class_: int) -> Vendor | None:
    """Return whose accelerator a PCI function is; none when it is no accelerator."""
    for one in VENDORS:
        if one.pci == vendor and (device in one.devices if one.devices else class_ in CLASSES):
            return one
    return None
