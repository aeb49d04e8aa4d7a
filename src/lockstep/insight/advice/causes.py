"""What can make a job slow: names, words and remedies, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Cause = Literal[
    "remote-storage",
    "slow-storage",
    "small-files",
    "few-workers",
    "cold-workers",
    "unpinned-memory",
    "blocking-copies",
    "cpu-in-loading",
    "cpu-quota",
    "checkpoints",
    "synchronising",
    "logging",
    "metrics",
    "small-batch",
    "small-kernels",
    "no-tensor-cores",
    "communication",
    "straggler",
    "throttling",
    "neighbour",
    "allocator-churn",
    "idle-hold",
]


@dataclass(frozen=True, slots=True)
class Known:
    """A cause: what it is, what mends it, and the experiment that proves it."""

    words: str
    remedy: str
    patch: str = ""
    """A line to write, ``{n}`` for a number that fits."""
    change: str = ""
    """What a clone of the job would have altered; nothing where only watching decides."""
    decides: str = "a clone of the job: lockstep advise JOB --prove"
    """What would settle it where it is only suspected."""


_RUN: Final = "watching for longer: at least 20 steps in a minute"

CAUSES: Final[dict[Cause, Known]] = {
    "remote-storage": Known(
        "samples come over the network, each read waits for an answer",
        "cache the data set on the nodes: a Dataset object, see docs/data.md",
        change="cached_bytes",
    ),
    "slow-storage": Known(
        "the medium under the data set gives too few bytes a second",
        "cache the data set in memory or on NVMe: a Dataset object with a tiered store",
        change="cached_bytes",
    ),
    "small-files": Known(
        "samples lie in very many small files",
        "pack them: tar shards (webdataset), Parquet or an LMDB; or cache the data set's metadata",
        change="cached_bytes",
    ),
    "few-workers": Known(
        "too few worker processes load the data while CPUs are free",
        "let worker processes load",
        patch="DataLoader(..., num_workers={n}, persistent_workers=True)",
        change="workers",
    ),
    "cold-workers": Known(
        "the workers start anew at each epoch, or hold too little ready",
        "keep the workers and let them load ahead",
        patch="DataLoader(..., persistent_workers=True, prefetch_factor=4)",
        change="persistent",
    ),
    "unpinned-memory": Known(
        "batches are copied to the GPU from pageable memory",
        "pin the loader's memory",
        patch="DataLoader(..., pin_memory=True)",
        change="pinned",
    ),
    "blocking-copies": Known(
        "the host waits for each copy to the GPU",
        "copy beside the computation",
        patch=".to(device, non_blocking=True)",
    ),
    "cpu-in-loading": Known(
        "decoding and transforming samples takes all the CPUs that there are",
        "transform once and store that, decode on the GPU, or ask for more CPUs",
        change="cached_batch",
    ),
    "cpu-quota": Known(
        "the container's CPU limit holds the job back",
        "raise the CPU limit of the pods, or lower OMP_NUM_THREADS and the workers",
        patch="resources.limits.cpu: {n}",
        change="cpu",
    ),
    "checkpoints": Known(
        "the step waits while checkpoints are written",
        "save less often, or in the background: lockstep.train.Checkpointer",
        change="no_checkpoint",
    ),
    "synchronising": Known(
        "the host waits for values of the GPU at each step",
        "keep the value on the device, and read it every hundredth step",
        patch="if step % 100 == 0: log(loss.item())",
        change="",
        decides="torch.cuda.set_sync_debug_mode('warn') for five steps",
    ),
    "logging": Known(
        "the step waits for its log or tracker",
        "log every hundredth step, or from a thread",
        patch="if step % 100 == 0: ...",
        change="no_logging",
    ),
    "metrics": Known(
        "metrics are computed or collected over all ranks at each step",
        "do it every hundredth step",
        patch="if step % 100 == 0: ...",
        change="no_metrics",
    ),
    "small-batch": Known(
        "a step has so little to compute that starting operations takes most of it",
        "a larger batch",
        patch="DataLoader(..., batch_size={n})",
        change="batch",
    ),
    "small-kernels": Known(
        "the GPU runs very many very short kernels",
        "torch.compile, or CUDA graphs",
        patch="model = torch.compile(model, mode='reduce-overhead')",
    ),
    "no-tensor-cores": Known(
        "matrices are multiplied in fp32, past the tensor cores",
        "mixed precision",
        patch="with torch.autocast('cuda', torch.bfloat16): ...",
    ),
    "communication": Known(
        "ranks wait for collectives while nothing is computed",
        "larger buckets and overlap, gradients in bf16, fewer steps that synchronise (no_sync), "
        "ranks closer together: lockstep explain JOB --layout",
        change="one_rank",
    ),
    "straggler": Known(
        "all ranks wait for one that is slower",
        "look at its node: lockstep diagnose JOB; or give that rank as much work as the others",
        change="one_rank",
        decides="the same job without the node of that rank",
    ),
    "throttling": Known(
        "the GPU lowers its clock, for heat or power",
        "cooling, or the power limit of the card",
        decides=_RUN,
    ),
    "neighbour": Known(
        "others on the same machine take the CPUs or the card",
        "ask for CPUs, or for a whole card; or move the job",
        decides=_RUN,
    ),
    "allocator-churn": Known(
        "memory of the GPU is taken and given back again and again",
        "expandable segments, and batches of one shape",
        patch="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        decides="torch.cuda.memory_stats()['num_alloc_retries'] over a minute",
    ),
    "idle-hold": Known(
        "GPUs are held and nothing runs on them",
        "end the job, or let a notebook be parked",
        decides=_RUN,
    ),
}
