"""What tests ask a node's network and its kubelet."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import grpc

from lockstep.devices.kubelet import podresources
from lockstep.devices.kubelet.wire import podresources_pb2 as wire
from lockstep.devices.network import netlink


def answers(netdev: str, source: str, target: str, patience: float = 1.0) -> bool:
    """Tell whether *target* answers ARP on a netdev.

    Raises:
        OSError: when the netdev cannot be used.
    """
    own, wanted = socket.inet_aton(source), socket.inet_aton(target)
    with netlink._packets(netdev) as packets:
        mac = packets.getsockname()[4]
        end = time.monotonic() + patience
        packets.send(netlink._request(mac, own, wanted))
        while (left := end - time.monotonic()) > 0:
            packets.settimeout(left)
            try:
                frame = packets.recv(1 << 11)
            except TimeoutError:
                return False
            if len(frame) >= netlink._FRAME.size:
                said = netlink._FRAME.unpack_from(frame)
                if said[2] == netlink.ARP and said[7] == 2 and said[9] == wanted:
                    return True
    return False


async def usable(kubelet: Path, resource: str) -> set[str]:
    """Return the sound devices of *resource* that kubelet knows, given out or not.

    Raises:
        grpc.aio.AioRpcError: when kubelet does not answer.
    """
    async with grpc.aio.insecure_channel(f"unix:{podresources.socket(kubelet)}") as channel:
        asked = channel.unary_unary(
            "/v1.PodResourcesLister/GetAllocatableResources",
            request_serializer=wire.AllocatableResourcesRequest.SerializeToString,
            response_deserializer=wire.AllocatableResourcesResponse.FromString,
        )
        answer = await asked(wire.AllocatableResourcesRequest(), timeout=podresources.TIMEOUT)
    offered = [one for one in answer.devices if one.resource_name == resource]
    return {identity for one in offered for identity in one.device_ids}


if __name__ == "__main__":
    sys.exit(not answers(*sys.argv[1:]))
