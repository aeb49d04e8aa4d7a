"""A training job of two processes that is slow for one cause: nothing loads beside the step.

Run it as a job (``slow.yaml``) and ask ``lockstep advise slow --prove``; ``--workers 8`` mends it.
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    """Samples on a medium that takes its time for each of them."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.02)
        return torch.full((64,), index % 10 / 10), index % 10


def main() -> None:
    """Train until the steps are done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(Archive(), batch_size=16, num_workers=options.workers)
    for step, (inputs, labels) in enumerate(loader):
        loss = loss_of(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step + 1 >= options.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
