"""The volume and the claim under a dataset's name."""

from __future__ import annotations

from typing import Final

from lockstep.api.dataset_cache import DRIVER
from lockstep.api.meta import owner_reference
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import Dataset
from lockstep.data.core.sharing import Unreadable, reference

STORAGE_CLASS: Final = "fluid"
"""As Fluid calls the class of its volumes; nothing provisions it."""
TOKEN_KEY: Final = "token"  # noqa: S105  the key's name
_SIZE: Final = "100Pi"
"""What Fluid writes: the size of a dataset's volume means nothing."""
_READ_ONLY: Final = ["ReadOnlyMany"]


def volume_name(dataset: Dataset) -> str:
    """Return the name of the dataset's PersistentVolume."""
    return f"{dataset.metadata.namespace}-{dataset.metadata.name}"


def labels(dataset: Dataset) -> dict[str, str]:
    """Return the labels by which Fluid's volumes are found."""
    meta = dataset.metadata
    return {
        f"fluid.io/s-{meta.namespace}-{meta.name}"[:63].rstrip("-."): "true",
        "fluid.io/dataset-id": f"{meta.namespace}-{meta.name}"[:63].rstrip("-."),
    }


def volume(dataset: Dataset) -> Json:
    """Return the PersistentVolume, which is for the claim of the same dataset alone."""
    meta = dataset.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(dataset), "labels": labels(dataset)},
        "spec": {
            "accessModes": dataset.spec.access_modes or _READ_ONLY,
            "capacity": {"storage": _SIZE},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta.namespace,
                "name": meta.name,
            },
            "csi": {
                "driver": DRIVER,
                "volumeHandle": f"{meta.namespace}-{meta.name}",
                "readOnly": True,
                "volumeAttributes": attributes(dataset),
            },
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "volumeMode": "Filesystem",
        },
    }


def attributes(dataset: Dataset) -> dict[str, str]:
    """Return which dataset a volume shows: the one of its name, or the one it stands for."""
    meta = dataset.metadata
    try:
        found = reference(dataset)
    except Unreadable:
        found = None
    if found is None:
        return {"namespace": meta.namespace, "dataset": meta.name}
    shown = {"namespace": found.namespace, "dataset": found.name}
    return {**shown, "path": found.path} if found.path else shown


def claim(dataset: Dataset) -> Json:
    """Return the PersistentVolumeClaim; it goes with the dataset."""
    meta = dataset.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": labels(dataset),
            "ownerReferences": [owner_reference(dataset)],
        },
        "spec": {
            "accessModes": dataset.spec.access_modes or _READ_ONLY,
            "resources": {"requests": {"storage": _SIZE}},
            "storageClassName": STORAGE_CLASS,
            "volumeMode": "Filesystem",
            "volumeName": volume_name(dataset),
        },
    }


def token_name(dataset: Dataset) -> str:
    """Return the name of the Secret that the dataset's nodes and clients show each other."""
    return f"{dataset.metadata.name}-data-token"[:253]


def token(dataset: Dataset, value: str) -> Json:
    """Return that Secret; it goes with the dataset."""
    meta = dataset.metadata
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": token_name(dataset),
            "namespace": meta.namespace,
            "labels": labels(dataset),
            "ownerReferences": [owner_reference(dataset)],
        },
        "type": "Opaque",
        "stringData": {TOKEN_KEY: value},
    }
