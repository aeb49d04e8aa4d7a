"""Pods that name no image: their commands are programs of the node that runs them."""

from __future__ import annotations

from typing import Final

from lockstep.api.names import NODE_KIND_LABEL
from lockstep.api.wire import Json

NO_IMAGE: Final = "none"
"""What a container without an image names; only nodes that Lockstep runs itself need none."""


def fill_in(spec: Json) -> None:
    """Let containers that have a command and no image run on nodes that need none.

    The pod then stays off kubelets, which would try to pull an image.
    """
    bare = [
        container
        for part in ("initContainers", "containers")
        for container in spec.get(part) or []
        if not container.get("image") and (container.get("command") or container.get("args"))
    ]
    for container in bare:
        container["image"] = NO_IMAGE
    if bare:
        keep_off_kubelets(spec)


def keep_off_kubelets(spec: Json) -> None:
    """Let a pod stand only on nodes that Lockstep runs itself."""
    affinity = spec.setdefault("affinity", {})
    node = affinity.setdefault("nodeAffinity", {})
    required = node.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.setdefault("nodeSelectorTerms", [{}])
    for term in terms:
        term.setdefault("matchExpressions", []).append(
            {"key": NODE_KIND_LABEL, "operator": "Exists"}
        )
