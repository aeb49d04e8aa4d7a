"""The script of a job's pods: DDP over the pod network, each step kept in the launcher's memory."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from lockstep.train import Checkpointer


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    checkpoints = Checkpointer(model=model, optimizer=optimizer)
    first = checkpoints.restore()
    print(f"rank {rank} of {size} on {os.uname().nodename} starts at step {first}", flush=True)
    print(f"process {os.getpid()}", flush=True)
    parallel = DistributedDataParallel(model)
    pace = float(os.environ.get("PACE", "0.05"))
    for step in range(first, int(os.environ.get("STEPS", "100000"))):
        loss = parallel(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        checkpoints.step(step + 1)
        if rank == 0:
            print(f"step {step + 1} at {time.time():.2f}", flush=True)
        time.sleep(pace)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
