"""What a cluster says of other systems' words, in the ConfigMap ``gpu-sharing``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.compat.shares.words import GIB

SETTINGS_MAP: Final = "gpu-sharing"
"""The ConfigMap, in our own namespace: ``gpushare-unit`` is GiB or MiB, and ``device-plugin`` the
configuration of NVIDIA's device plugin."""
_UNITS: Final = {"GiB": GIB, "MiB": 1}


@dataclass(frozen=True, slots=True)
class Settings:
    """How amounts of other systems are to be read."""

    gpushare_unit: int = GIB
    """MiB of one ``aliyun.com/gpu-mem``."""
    replicas: int = 0
    """Into how many turns NVIDIA's device plugin splits a card; 0 where it is not known."""


def settings(data: Mapping[str, str]) -> Settings:
    """Return what a ConfigMap's data says; what cannot be read is left at the usual."""
    unit = _UNITS.get(data.get("gpushare-unit", ""), GIB)
    return Settings(unit, _replicas(data.get("device-plugin", "")))


def _replicas(text: str) -> int:
    if not text:
        return 0
    import yaml  # only where it is needed: it takes long to load

    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        return 0
    for step in ("sharing", "timeSlicing", "resources"):
        found = found.get(step) if isinstance(found, dict) else None
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict) and str(one.get("name", "")).startswith("nvidia.com/gpu"):
            count = one.get("replicas")
            return count if isinstance(count, int) and count > 0 else 0
    return 0
