"""DeviceUsage: what the devices of one node do and for whom, as the node agent last saw it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class GpuUsage(Wire, frozen=True):
    """One GPU; what is not told of it is left out."""

    index: Annotated[int, Meta(ge=0, description="Index until the next reset.")]
    uuid: Annotated[str, Meta(description="Its identity.")] = ""
    model: str = ""
    memory: Annotated[int, Meta(description="MiB that it has.")] = 0
    memory_used: Annotated[int, Meta(description="MiB in use.")] = 0
    utilization: Annotated[int, Meta(description="Percent of time with any kernel running.")] = 0
    sm_active: Annotated[int | None, Meta(description="Percent of SM cycles with a warp.")] = None
    tensor_active: Annotated[int | None, Meta(description="Percent of tensor cycles.")] = None
    power: Annotated[int, Meta(description="Watts.")] = 0
    temperature: Annotated[int, Meta(description="Degrees Celsius.")] = 0
    pods: Annotated[list[str], Meta(description="NAMESPACE/POD of those that hold it.")] = []
    trouble: Annotated[str, Meta(description="Why it must not be used.")] = ""


class ShareUsage(Wire, frozen=True):
    """What a container has of one GPU, and what it uses of that."""

    pod: Annotated[str, Meta(description="NAMESPACE/POD.")]
    container: str
    gpu: Annotated[int, Meta(ge=0, description="Index of the GPU.")]
    memory: Annotated[int, Meta(description="MiB that it may have; 0: no limit.")] = 0
    memory_used: Annotated[int, Meta(description="MiB that its processes hold.")] = 0
    compute: Annotated[int, Meta(description="Hundredths that it may use; 0: what is left.")] = 0
    compute_used: Annotated[int, Meta(description="Hundredths that it used.")] = 0
    policy: Annotated[str, Meta(description="fixed, burst or none.")] = "fixed"
    throttled: Annotated[int, Meta(description="Hundredths of time that it was held back.")] = 0
    refused: Annotated[int, Meta(description="Allocations beyond its limit.")] = 0
    unknown_calls: Annotated[int, Meta(description="Calls looked up that are not known.")] = 0
    alone: Annotated[bool, Meta(description="Whether it found its leases not renewed.")] = False


class DeviceUsage(OwnObject, frozen=True):
    """What the devices of the node of the same name do."""

    time: Annotated[str, Meta(description="When it was seen.")] = ""
    gpus: list[GpuUsage] = []
    shares: list[ShareUsage] = []
    kind: str = "DeviceUsage"


DEVICE_USAGES = Resource(GROUP, VERSION, "deviceusages", "DeviceUsage", False, DeviceUsage)
