"""Views of ``resource.k8s.io/v1``: devices that drivers publish and claims that pods make."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import field

from lockstep.api.containers import Quantity
from lockstep.api.core import NodeSelector, Toleration
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

DRA_GROUP: Final = "resource.k8s.io"
DRIVER: Final = "gpu.lockstep.dev"
"""The driver of the cards that the node agent finds, and the name of their DeviceClass."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim as long as it is allocated, as upstream's controller expects it."""
INDEX: Final = "index"
"""The attribute of our driver's devices that says which card of the node one is."""


class DeviceAttribute(Wire, frozen=True):
    """One of four forms of a value."""

    integer: int | None = field(default=None, name="int")
    boolean: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None

    @property
    def value(self) -> int | bool | str | None:
        """Return the value in any of its forms; a version as it is written."""
        forms = (self.integer, self.boolean, self.string, self.version)
        return next((one for one in forms if one is not None), None)


class Amount(Wire, frozen=True):
    """A capacity of a device, or what a counter holds."""

    value: Quantity = 0


class CounterUse(Wire, frozen=True):
    """What a device takes of a set of counters that it shares with other devices."""

    counter_set: str
    counters: dict[str, Amount] = {}


class CounterSet(Wire, frozen=True):
    """Counters that devices of one pool share."""

    name: str
    counters: dict[str, Amount] = {}


class DeviceTaint(Wire, frozen=True):
    """Why a device is given to claims alone that tolerate it."""

    key: str
    effect: str
    value: str = ""


class SliceDevice(Wire, frozen=True):
    """One device that a driver publishes."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, Amount] = {}
    consumes_counters: list[CounterUse] = []
    taints: list[DeviceTaint] = []
    allow_multiple_allocations: bool = False


class SlicePool(Wire, frozen=True):
    """Which pool a slice is a part of; the slices of the highest generation count."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Wire, frozen=True):
    """Devices of one pool, and the nodes that reach them."""

    driver: str
    pool: SlicePool
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    devices: list[SliceDevice] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(Wire, frozen=True):
    """A part of what a driver has."""

    metadata: ObjectMeta
    spec: SliceSpec
    api_version: str = ""
    kind: str = ""


class Cel(Wire, frozen=True):
    """An expression over ``device``."""

    expression: str


class Selector(Wire, frozen=True):
    """What a device must be like."""

    cel: Cel | None = None


class DeviceClassSpec(Wire, frozen=True):
    """What the devices of a class have in common."""

    selectors: list[Selector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    """A kind of device that claims name."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()
    api_version: str = ""
    kind: str = ""


class CapacityAsk(Wire, frozen=True):
    """What a request takes of a device that several claims may have."""

    requests: dict[str, Quantity] = {}


class DeviceAsk(Wire, frozen=True):
    """Devices of one class: *count* of them, or all that there are."""

    device_class_name: str = ""
    name: str = ""
    """Of an alternative."""
    selectors: list[Selector] = []
    allocation_mode: Literal["ExactCount", "All"] = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: list[Toleration] = []
    capacity: CapacityAsk = CapacityAsk()


class DeviceRequest(Wire, frozen=True):
    """One request of a claim: exactly this, or the first of some that can be had."""

    name: str
    exactly: DeviceAsk | None = None
    first_available: list[DeviceAsk] = []


class Constraint(Wire, frozen=True):
    """What the devices of some requests (or of all) must have in common, or must not."""

    requests: list[str] = []
    match_attribute: str = ""
    distinct_attribute: str = ""


class ClaimDevices(Wire, frozen=True):
    """What a claim asks for."""

    requests: list[DeviceRequest] = []
    constraints: list[Constraint] = []
    config: list[dict[str, Any]] = []


class ClaimSpec(Wire, frozen=True):
    """What a claim asks for."""

    devices: ClaimDevices = ClaimDevices()


class AllocatedDevice(Wire, frozen=True):
    """One device that a claim has."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: list[Toleration] = []
    share_id: str = field(default="", name="shareID")
    consumed_capacity: dict[str, Quantity] = {}


class AllocatedDevices(Wire, frozen=True):
    """All devices that a claim has."""

    results: list[AllocatedDevice] = []
    config: list[dict[str, Any]] = []


class Allocation(Wire, frozen=True):
    """What a claim got, and where that can be reached."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(Wire, frozen=True):
    """An object that uses a claim."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


class ClaimStatus(Wire, frozen=True):
    """What a claim got and for whom."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []


class ResourceClaim(Wire, frozen=True):
    """Devices that pods ask for."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()
    api_version: str = ""
    kind: str = ""


RESOURCE_SLICES: Final = Resource(
    DRA_GROUP, "v1", "resourceslices", "ResourceSlice", False, ResourceSlice
)
DEVICE_CLASSES: Final = Resource(
    DRA_GROUP, "v1", "deviceclasses", "DeviceClass", False, DeviceClass
)
RESOURCE_CLAIMS: Final = Resource(
    DRA_GROUP, "v1", "resourceclaims", "ResourceClaim", True, ResourceClaim
)
