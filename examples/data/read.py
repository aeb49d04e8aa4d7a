"""Reads a dataset by a torch DataLoader, in an order that the node's cache fetches ahead.

python examples/data/read.py /mnt/pictures
"""

from __future__ import annotations

import sys

from lockstep.data.client import EpochSampler, Files


def main(root: str, epochs: int = 2) -> int:
    """Read *epochs* of the files below *root*, and return how many bytes that were."""
    import torch

    files = Files(root, decode=len)
    sampler = EpochSampler(files, seed=1)
    loader = torch.utils.data.DataLoader(files, batch_size=8, sampler=sampler)
    total = 0
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            total += int(batch.sum())
        print(f"epoch {epoch}: {len(files)} files, {total} bytes so far")
    return total


if __name__ == "__main__":
    main(sys.argv[1])
