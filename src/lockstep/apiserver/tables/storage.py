"""The tables of volumes and devices."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    at,
    listed,
    marked_default,
    wide,
)

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(obj: Json, path: str) -> str:
    modes = at(obj, path, [])
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(obj: Json) -> str:
    gone = at(obj, "metadata.deletionTimestamp")
    return "Terminating" if gone else str(at(obj, "status.phase", ""))


def _class(obj: Json) -> str:
    old = at(obj, "metadata.annotations", {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old or at(obj, "spec.storageClassName", ""))


def _claim(obj: Json) -> str:
    return _CLAIM(obj) if at(obj, "spec.claimRef") else ""


def _claimed_capacity(obj: Json) -> str:
    return at(obj, "status.capacity", {}).get("storage", "0") if at(obj, _BOUND) else ""


def _claimed_modes(obj: Json) -> str:
    return _modes(obj, "status.accessModes") if at(obj, _BOUND) else ""


def _audiences(obj: Json) -> str:
    tokens = at(obj, "spec.tokenRequests")
    return UNSET if tokens is None else ",".join(t.get("audience", "") for t in tokens)


def _device_state(obj: Json) -> str:
    states = ["deleted"] if at(obj, "metadata.deletionTimestamp") else []
    if at(obj, "status.allocation") is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", "reserved"] if at(obj, "status.reservedFor") else ["allocated"]
    return ",".join(states)


_CLAIM = listed(("spec.claimRef.namespace", "spec.claimRef.name"))
_BOUND = "spec.volumeName"
_PV, _PVC = "core.v1.PersistentVolume", "core.v1.PersistentVolumeClaim"
_SC, _VA = "storage.v1.StorageClass", "storage.v1.VolumeAttachment"
_CSI, _DEVICES = "storage.v1.CSIDriverSpec", "resource.v1"


def _classes(kind: str) -> tuple[Column, Column]:
    attributes = "spec.volumeAttributesClassName"
    return (
        Column("StorageClass", f"StorageClass of the {kind}", _class),
        Column(
            "VolumeAttributesClass",
            f"VolumeAttributesClass of the {kind}",
            attributes,
            unset=UNSET,
        ),
    )


COLUMNS = {
    "persistentvolumes": (
        NAME,
        Column("Capacity", f"{_PV}Spec#capacity", "spec.capacity.storage", unset="0"),
        Column(
            "Access Modes", f"{_PV}Spec#accessModes", lambda obj: _modes(obj, "spec.accessModes")
        ),
        Column("Reclaim Policy", f"{_PV}Spec#persistentVolumeReclaimPolicy"),
        Column("Status", f"{_PV}Status#phase", _phase),
        Column("Claim", f"{_PV}Spec#claimRef", _claim),
        *_classes("pv"),
        Column("Reason", f"{_PV}Status#reason"),
        AGE,
        wide("VolumeMode", f"{_PV}Spec#volumeMode", unset=UNSET),
    ),
    "persistentvolumeclaims": (
        NAME,
        Column("Status", f"{_PVC}Status#phase", _phase),
        Column("Volume", f"{_PVC}Spec#volumeName"),
        Column("Capacity", f"{_PVC}Status#capacity", _claimed_capacity),
        Column("Access Modes", f"{_PVC}Status#accessModes", _claimed_modes),
        *_classes("pvc"),
        AGE,
        wide("VolumeMode", f"{_PVC}Spec#volumeMode", unset=UNSET),
    ),
    "storageclasses.storage.k8s.io": (
        marked_default("storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"),
        Column("Provisioner", f"{_SC}#provisioner"),
        Column("ReclaimPolicy", f"{_SC}#reclaimPolicy", unset="Delete"),
        Column("VolumeBindingMode", f"{_SC}#volumeBindingMode", unset="Immediate"),
        Column("AllowVolumeExpansion", f"{_SC}#allowVolumeExpansion", unset=False),
        AGE,
    ),
    "volumeattachments.storage.k8s.io": (
        NAME,
        Column("Attacher", f"{_VA}Spec#attacher", format="name"),
        Column("PV", f"{_VA}Source#persistentVolumeName", "spec.source.persistentVolumeName"),
        Column("Node", f"{_VA}Spec#nodeName"),
        Column("Attached", f"{_VA}Status#attached", type="boolean"),
        AGE,
    ),
    "csidrivers.storage.k8s.io": (
        NAME,
        Column("AttachRequired", f"{_CSI}#attachRequired", type="boolean", unset=True),
        Column("PodInfoOnMount", f"{_CSI}#podInfoOnMount", type="boolean"),
        Column("StorageCapacity", f"{_CSI}#storageCapacity", type="boolean"),
        Column("TokenRequests", f"{_CSI}#tokenRequests", _audiences),
        Column("RequiresRepublish", f"{_CSI}#requiresRepublish", type="boolean"),
        Column(
            "Modes",
            f"{_CSI}#volumeLifecycleModes",
            lambda obj: ",".join(at(obj, "spec.volumeLifecycleModes", [])) or NONE,
        ),
        AGE,
    ),
    "csinodes.storage.k8s.io": (
        NAME,
        Column(
            "Drivers",
            "Drivers indicates the number of CSI drivers registered on the node",
            lambda obj: len(at(obj, "spec.drivers", [])),
            "integer",
        ),
        AGE,
    ),
    "csistoragecapacities.storage.k8s.io": (
        NAME,
        Column("StorageClassName", "storage.v1.CSIStorageCapacity#storageClassName"),
        Column("Capacity", "storage.v1.CSIStorageCapacity#capacity", unset=UNSET),
    ),
    "volumeattributesclasses.storage.k8s.io": (
        NAME,
        Column("DriverName", "storage.v1.VolumeAttributesClass#driverName"),
        AGE,
    ),
    "resourceclaims.resource.k8s.io": (
        NAME,
        Column(
            "State",
            "A summary of the current state (allocated, pending, reserved, etc.).",
            _device_state,
        ),
        AGE,
    ),
    "resourceclaimtemplates.resource.k8s.io": (NAME, AGE),
    "deviceclasses.resource.k8s.io": (NAME, AGE),
    "resourceslices.resource.k8s.io": (
        NAME,
        Column("Node", f"{_DEVICES}.ResourceSliceSpec#nodeName"),
        Column("Driver", f"{_DEVICES}.ResourceSliceSpec#driver"),
        Column("Pool", f"{_DEVICES}.ResourcePool#name", "spec.pool.name"),
        AGE,
    ),
}
