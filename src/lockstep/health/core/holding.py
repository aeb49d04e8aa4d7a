"""Which devices a pod has."""

from __future__ import annotations

from lockstep.api import names
from lockstep.api.core import Pod


def holds(pod: Pod) -> frozenset[str]:
    """Return the devices that a pod was given, as ``gpu/3`` and ``nic/0``."""
    told = pod.metadata.annotations
    kinds = (("gpu", names.GPUS_ANNOTATION), ("nic", names.NICS_ANNOTATION))
    return frozenset(
        f"{kind}/{index.strip()}"
        for kind, name in kinds
        for index in told.get(name, "").split(",")
        if index.strip().isdecimal()
    )
