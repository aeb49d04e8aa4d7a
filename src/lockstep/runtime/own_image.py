"""The image of Lockstep's own containers in users' pods: on a cluster that of the installation."""

from __future__ import annotations

import os
from typing import Any, Final

VARIABLE: Final = "LOCKSTEP_LAUNCHER_IMAGE"
"""Tells the controllers which image is Lockstep's own; the chart sets it."""
_MODULES: Final = {
    "lockstep/step-files:latest": "lockstep.pipelines.files",
    "lockstep/data-operation:latest": "lockstep.data.operations",
}
"""What these images are on a process node: modules of Lockstep, by its table of images."""


def own_image() -> str:
    """Return Lockstep's image; empty where there is none, as on a process node."""
    return os.environ.get(VARIABLE, "")


def with_own_image(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a pod's *spec*, changed in place, whose helpers run from Lockstep's image."""
    image = own_image()
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        module = _MODULES.get(str(container.get("image")))
        if image and module:
            command = ["/opt/lockstep/bin/python", "-P", "-m", module]
            container |= {"image": image, "command": command}
    return spec
