"""Datasets from Python: files by fsspec, and what a torch ``DataLoader`` takes.

Example::

    from lockstep.data.client import EpochSampler, Files

    files = Files("/mnt/images", suffix=".jpg")
    sampler = EpochSampler(files, seed=1, rank=rank, world=world)
    loader = torch.utils.data.DataLoader(files, batch_size=32, sampler=sampler)
"""

from lockstep.data.client.files import Files
from lockstep.data.client.sampler import EpochSampler

__all__ = ["EpochSampler", "Files"]
