"""Which dataset a volume shows: a claim's, or one that is written into a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

EPHEMERAL: Final = "csi.storage.k8s.io/ephemeral"
POD_NAMESPACE: Final = "csi.storage.k8s.io/pod.namespace"
_ABOUT_PODS: Final = "csi.storage.k8s.io/"
_KNOWN: Final = ("dataset", "namespace", "path")


class BadVolume(ValueError):
    """A volume that shows no dataset; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A dataset, and the directory in it."""

    namespace: str
    dataset: str
    path: str = ""
    by_name: bool = False
    """Whether the pod names it: then it is one of the pod's namespace, or stands for another."""


def asked(context: Mapping[str, str]) -> Asked:
    """Return what the attributes of a volume ask for.

    A PersistentVolume is made by the cluster's own controller, which may name the dataset of
    another namespace; a pod reads those of its own namespace alone.

    Raises:
        BadVolume: when they ask for nothing that can be shown.
    """
    own = {name: text for name, text in context.items() if not name.startswith(_ABOUT_PODS)}
    if unknown := sorted(own.keys() - set(_KNOWN)):
        raise BadVolume(f"volumeAttributes {', '.join(unknown)}: there are dataset and path")
    dataset, path = own.get("dataset", ""), own.get("path", "")
    if not dataset:
        raise BadVolume("volumeAttributes has no dataset: the name of a Dataset")
    if ".." in path.split("/") or path.startswith("/"):
        raise BadVolume(f"volumeAttributes path {path!r}: a directory within the dataset")
    space = context.get(POD_NAMESPACE, "")
    if context.get(EPHEMERAL) != "true":
        return Asked(own.get("namespace", space), dataset, path)
    if own.get("namespace", space) != space:
        raise BadVolume(
            f"volumeAttributes namespace {own['namespace']!r}: a pod shows datasets of its own "
            f"namespace {space!r}; a Dataset there with the mount dataset://{own['namespace']}/"
            f"{dataset} stands for the other one"
        )
    return Asked(space, dataset, path, by_name=True)
