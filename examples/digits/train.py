"""Train a classifier of handwritten digits on any number of ranks, and survive being killed.

The state of each step is kept in the memory of the pod's launcher: a rank that is killed goes on at
its very step. The data set ships inside scikit-learn, so nothing is downloaded. Started by the
PyTorch convention (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); alone it is one rank.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lockstep.train import Batches, Checkpointer

SEED = 0


@dataclass(frozen=True)
class Data:
    """Images (n, 1, 8, 8) and labels, split the same way on every rank."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def load() -> Data:
    """Return the data set, with a fifth held back for the test."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    parts = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    return Data(parts[0], parts[2], parts[1], parts[3])


def build() -> nn.Module:
    """Return the network, initialised the same way on every rank."""
    torch.manual_seed(SEED)
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4 * 4, 128), nn.ReLU()),
        nn.Linear(128, 10),
    )


def accuracy(model: nn.Module, data: Data) -> float:
    """Return the share of the test images that the model gets right."""
    model.eval()
    with torch.no_grad():
        right = model(data.test_x).argmax(1) == data.test_y
    model.train()
    return float(right.float().mean())


def train(options: argparse.Namespace) -> None:
    """Train from the newest checkpoint, or from the start, to the last step."""
    data, model = load(), build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    batches = Batches(len(data.train_y), batch=options.batch, seed=SEED)
    checkpoints = Checkpointer(model=model, optimizer=optimizer, batches=batches)
    first = checkpoints.restore()
    leader = dist.get_rank() == 0
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} starts at step {first}", flush=True)
    parallel = DistributedDataParallel(model)
    epochs = iter(batches)
    for step in range(first, options.steps):
        chosen = next(epochs, None)
        if chosen is None:
            epochs = iter(batches)
            chosen = next(epochs)
        loss = cross_entropy(parallel(data.train_x[chosen]), data.train_y[chosen])
        # Where the batch does not divide evenly some ranks have a sample more.
        loss = loss * batches.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done = step + 1
        checkpoints.step(done)
        if leader and (done % options.every == 0 or done == options.steps):
            print(f"step {done}/{options.steps} loss {loss.item():.4f}", flush=True)
    if leader:
        print(f"test accuracy {accuracy(model, data):.4f}", flush=True)
    dist.barrier()


def main() -> None:
    """Join the other ranks, train, leave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--every", type=int, default=50, help="steps between lines of output")
    parser.add_argument(
        "--batch", type=int, default=128, help="images of all ranks together in one step"
    )
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    options = parser.parse_args()
    for name, alone in (
        *(("RANK", "0"), ("WORLD_SIZE", "1")),
        *(("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0")),
    ):
        os.environ.setdefault(name, alone)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        train(options)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
