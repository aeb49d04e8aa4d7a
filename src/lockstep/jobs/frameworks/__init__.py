"""The launch conventions that a job can ask for, a file each."""

from __future__ import annotations

from typing import Final

from lockstep.jobs.frameworks.base import Framework
from lockstep.jobs.frameworks.clusters import CLUSTERS
from lockstep.jobs.frameworks.mpi import Horovod, Mpi
from lockstep.jobs.frameworks.plain import Plain
from lockstep.jobs.frameworks.pytorch import PyTorch
from lockstep.jobs.frameworks.static import STATIC
from lockstep.jobs.frameworks.torch_family import DeepSpeed, Megatron

FRAMEWORKS: Final[dict[str, Framework]] = {
    f.name: f
    for f in (
        PyTorch(),
        Megatron(),
        DeepSpeed(),
        Mpi(),
        Horovod(),
        Plain(),
        *STATIC,
        *CLUSTERS,
    )
}
