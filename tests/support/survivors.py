"""A torch program that counts its steps, and the pods that run it."""

from __future__ import annotations

from typing import Any

PATIENCE = 280.0
"""Seconds: on a machine with much else to do, torch takes a minute to be imported."""


SCRIPT = """
import os, sys, time, torch, torch.distributed as dist
from lockstep.train import Checkpointer

class Sum:
    def __init__(self):
        self.value = torch.zeros(1000)
        if "PARTS" in os.environ:
            from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
            mesh = init_device_mesh("cpu", (dist.get_world_size(),))
            self.value = distribute_tensor(self.value, mesh, [Shard(0)])
    def own(self): return self.value.to_local() if "PARTS" in os.environ else self.value
    def state_dict(self): return {"value": self.value}
    def load_state_dict(self, state): self.value.copy_(state["value"])

dist.init_process_group("gloo")
kept = Sum()
ckpt = Checkpointer(kept=kept)
start = ckpt.restore()
rank, out = dist.get_rank(), os.environ["OUT"]
print(f"rank {rank} starts at {start} with {kept.own()[0].item():.0f}", flush=True)
for step in range(start, int(sys.argv[1])):
    one = torch.ones(1000)
    dist.all_reduce(one)
    kept.own().add_(one[:len(kept.own())])
    ckpt.step(step + 1)
    with open(f"{out}/steps-{rank}", "a") as file:
        file.write(f"{step}\\n")
    with open(f"{out}/go") as go:
        while step + 1 == int(go.read() or 0) and not os.path.exists(f"{out}/past"):
            time.sleep(0.02)
            go.seek(0)
print(f"rank {rank} ends with {kept.own()[0].item():.0f}", flush=True)
dist.destroy_process_group()
"""


def worker(*command: str, env: list[dict[str, str]] | None = None, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": list(command), "env": env or []}
    spec = {"terminationGracePeriodSeconds": 2, "containers": [container]}
    return {"name": "worker", "replicas": 2, "template": {"spec": spec}, **more}
