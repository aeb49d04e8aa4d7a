"""Commands by which vLLM serves a replica: alone, over pipeline stages, over data ranks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.kserve import storage

PORT: Final = 8000
RPC_PORT: Final = 5555
"""Port of the head by which data ranks meet, unless ``dataRPCPort`` says another."""
MASTER_PORT: Final = 29500
_TRANSFER: Final = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
_POD_IP: Final[Json] = {"fieldRef": {"fieldPath": "status.podIP"}}


@dataclass(frozen=True, slots=True)
class Layout:
    """How a replica lies over nodes."""

    nodes: int = 1
    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    data_local: int | None = None
    rpc_port: int = RPC_PORT
    expert: bool = False
    transfers: bool = False
    """Whether one replica reads prompts for another: both carry the KV transfer configuration."""

    @property
    def over_data(self) -> bool:
        """Return whether nodes hold data ranks, not pipeline stages."""
        return self.nodes > 1 and bool(self.data) and bool(self.data_local)


def head(layout: Layout, served: str, extra: list[str]) -> Json:
    """Return command, arguments, environment and probe of the pod that answers requests."""
    found = [f"--served-model-name={served}", f"--port={PORT}", *_shared(layout)]
    if layout.over_data:
        # A socket binds to an address, not to a name.
        found += [*_ranks(layout, "$(POD_IP)"), "--data-parallel-start-rank=0"]
    elif layout.nodes > 1:
        found += _stages(layout)
    return {
        "command": ["vllm", "serve", storage.MODELS],
        "args": [*found, *extra],
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1},
        "env": _environment(layout),
    }


def worker(layout: Layout, served: str, extra: list[str]) -> Json:
    """Return command, arguments and environment of a pod that works for the head."""
    found = [f"--served-model-name={served}", "--headless", *_shared(layout)]
    command = ["vllm", "serve", storage.MODELS]
    if layout.over_data:
        rank = f"--data-parallel-start-rank=$((LWS_WORKER_INDEX * {layout.data_local}))"
        command = ["/bin/sh", "-c", f'exec vllm serve {storage.MODELS} "$@" {rank}', "vllm"]
        found += _ranks(layout, "$(LWS_LEADER_ADDRESS)")
    else:
        found += _stages(layout)
    return {"command": command, "args": [*found, *extra], "env": _environment(layout)}


def _shared(layout: Layout) -> list[str]:
    sizes = {"tensor": layout.tensor, "pipeline": layout.pipeline, "data": layout.data}
    found = [f"--{name}-parallel-size={size}" for name, size in sizes.items() if size]
    if layout.expert:
        found.append("--enable-expert-parallel")
    if layout.transfers:
        found.append(f"--kv-transfer-config={json.dumps(_TRANSFER, separators=(',', ':'))}")
    return found


def _ranks(layout: Layout, address: str) -> list[str]:
    return [
        f"--data-parallel-size-local={layout.data_local}",
        f"--data-parallel-address={address}",
        f"--data-parallel-rpc-port={layout.rpc_port}",
    ]


def _stages(layout: Layout) -> list[str]:
    return [
        f"--nnodes={layout.nodes}",
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--master-addr=$(LWS_LEADER_ADDRESS)",
        f"--master-port={MASTER_PORT}",
    ]


def _environment(layout: Layout) -> list[Json]:
    """Return the variables by which vLLM's parts find each other."""
    found = []
    if layout.over_data:
        found.append({"name": "POD_IP", "valueFrom": _POD_IP})
    if layout.transfers:
        found.append({"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": _POD_IP})
    return found
