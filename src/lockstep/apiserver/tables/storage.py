"""The tables of volumes and devices."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Layout,
    age,
    at,
    name_of,
    wide,
)

Json = dict[str, Any]

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(obj: Json) -> str:
    gone = at(obj, "metadata.deletionTimestamp")
    return "Terminating" if gone else str(at(obj, "status.phase", ""))


def _class(obj: Json) -> str:
    old = at(obj, "metadata.annotations", {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old or at(obj, "spec.storageClassName", ""))


def _volume(obj: Json, now: float) -> Cells:
    claim = at(obj, "spec.claimRef")
    return [
        name_of(obj),
        at(obj, "spec.capacity", {}).get("storage", "0"),
        _modes(at(obj, "spec.accessModes", [])),
        at(obj, "spec.persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        at(obj, "spec.volumeAttributesClassName", UNSET),
        at(obj, "status.reason", ""),
        age(obj, now),
        at(obj, "spec.volumeMode", UNSET),
    ]


def _claim(obj: Json, now: float) -> Cells:
    volume = at(obj, "spec.volumeName", "")
    return [
        name_of(obj),
        _phase(obj),
        volume,
        at(obj, "status.capacity", {}).get("storage", "0") if volume else "",
        _modes(at(obj, "status.accessModes", [])) if volume else "",
        _class(obj),
        at(obj, "spec.volumeAttributesClassName", UNSET),
        age(obj, now),
        at(obj, "spec.volumeMode", UNSET),
    ]


def _storage_class(obj: Json, now: float) -> Cells:
    name, marks = name_of(obj), at(obj, "metadata.annotations", {})
    if any(
        marks.get(f"storageclass.{beta}kubernetes.io/is-default-class") == "true"
        for beta in ("", "beta.")
    ):
        name += " (default)"
    return [
        name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attachment(obj: Json, now: float) -> Cells:
    return [
        name_of(obj),
        at(obj, "spec.attacher", ""),
        at(obj, "spec.source.persistentVolumeName", ""),
        at(obj, "spec.nodeName", ""),
        bool(at(obj, "status.attached")),
        age(obj, now),
    ]


def _driver(obj: Json, now: float) -> Cells:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    audiences = ",".join(t.get("audience", "") for t in tokens or ())
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if tokens is None else audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _driver_node(obj: Json, now: float) -> Cells:
    return [name_of(obj), len(at(obj, "spec.drivers", [])), age(obj, now)]


def _capacity(obj: Json, _now: float) -> Cells:
    return [name_of(obj), obj.get("storageClassName", ""), str(obj.get("capacity", UNSET))]


def _attributes_class(obj: Json, now: float) -> Cells:
    return [name_of(obj), obj.get("driverName", ""), age(obj, now)]


def _device_claim(obj: Json, now: float) -> Cells:
    states = ["deleted"] if at(obj, "metadata.deletionTimestamp") else []
    if at(obj, "status.allocation") is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", "reserved"] if at(obj, "status.reservedFor") else ["allocated"]
    return [name_of(obj), ",".join(states), age(obj, now)]


def _slice(obj: Json, now: float) -> Cells:
    places = ("nodeName", "driver", "pool.name")
    return [name_of(obj), *(at(obj, f"spec.{p}", "") for p in places), age(obj, now)]


def _plain(obj: Json, now: float) -> Cells:
    return [name_of(obj), age(obj, now)]


_PV, _PVC = "core.v1.PersistentVolume", "core.v1.PersistentVolumeClaim"
_SC, _VA, _CSI = (
    "storage.v1.StorageClass",
    "storage.v1.VolumeAttachment",
    "storage.v1.CSIDriverSpec",
)
_DEVICES = "resource.v1"

LAYOUTS = {
    "persistentvolumes": Layout(
        (
            NAME,
            Column("Capacity", f"{_PV}Spec#capacity"),
            Column("Access Modes", f"{_PV}Spec#accessModes"),
            Column("Reclaim Policy", f"{_PV}Spec#persistentVolumeReclaimPolicy"),
            Column("Status", f"{_PV}Status#phase"),
            Column("Claim", f"{_PV}Spec#claimRef"),
            Column("StorageClass", "StorageClass of the pv"),
            Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
            Column("Reason", f"{_PV}Status#reason"),
            AGE,
            wide("VolumeMode", f"{_PV}Spec#volumeMode"),
        ),
        _volume,
    ),
    "persistentvolumeclaims": Layout(
        (
            NAME,
            Column("Status", f"{_PVC}Status#phase"),
            Column("Volume", f"{_PVC}Spec#volumeName"),
            Column("Capacity", f"{_PVC}Status#capacity"),
            Column("Access Modes", f"{_PVC}Status#accessModes"),
            Column("StorageClass", "StorageClass of the pvc"),
            Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            AGE,
            wide("VolumeMode", f"{_PVC}Spec#volumeMode"),
        ),
        _claim,
    ),
    "storageclasses.storage.k8s.io": Layout(
        (
            NAME,
            Column("Provisioner", f"{_SC}#provisioner"),
            Column("ReclaimPolicy", f"{_SC}#reclaimPolicy"),
            Column("VolumeBindingMode", f"{_SC}#volumeBindingMode"),
            Column("AllowVolumeExpansion", f"{_SC}#allowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
    "volumeattachments.storage.k8s.io": Layout(
        (
            NAME,
            Column("Attacher", f"{_VA}Spec#attacher", format="name"),
            Column("PV", f"{_VA}Source#persistentVolumeName"),
            Column("Node", f"{_VA}Spec#nodeName"),
            Column("Attached", f"{_VA}Status#attached", "boolean"),
            AGE,
        ),
        _attachment,
    ),
    "csidrivers.storage.k8s.io": Layout(
        (
            NAME,
            Column("AttachRequired", f"{_CSI}#attachRequired", "boolean"),
            Column("PodInfoOnMount", f"{_CSI}#podInfoOnMount", "boolean"),
            Column("StorageCapacity", f"{_CSI}#storageCapacity", "boolean"),
            Column("TokenRequests", f"{_CSI}#tokenRequests"),
            Column("RequiresRepublish", f"{_CSI}#requiresRepublish", "boolean"),
            Column("Modes", f"{_CSI}#volumeLifecycleModes"),
            AGE,
        ),
        _driver,
    ),
    "csinodes.storage.k8s.io": Layout(
        (
            NAME,
            Column(
                "Drivers",
                "Drivers indicates the number of CSI drivers registered on the node",
                "integer",
            ),
            AGE,
        ),
        _driver_node,
    ),
    "csistoragecapacities.storage.k8s.io": Layout(
        (
            NAME,
            Column("StorageClassName", "storage.v1.CSIStorageCapacity#storageClassName"),
            Column("Capacity", "storage.v1.CSIStorageCapacity#capacity"),
        ),
        _capacity,
    ),
    "volumeattributesclasses.storage.k8s.io": Layout(
        (NAME, Column("DriverName", "storage.v1.VolumeAttributesClass#driverName"), AGE),
        _attributes_class,
    ),
    "resourceclaims.resource.k8s.io": Layout(
        (
            NAME,
            Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            AGE,
        ),
        _device_claim,
    ),
    "resourceclaimtemplates.resource.k8s.io": Layout((NAME, AGE), _plain),
    "deviceclasses.resource.k8s.io": Layout((NAME, AGE), _plain),
    "resourceslices.resource.k8s.io": Layout(
        (
            NAME,
            Column("Node", f"{_DEVICES}.ResourceSliceSpec#nodeName"),
            Column("Driver", f"{_DEVICES}.ResourceSliceSpec#driver"),
            Column("Pool", f"{_DEVICES}.ResourcePool#name"),
            AGE,
        ),
        _slice,
    ),
}
