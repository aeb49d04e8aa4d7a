"""Before ranks start: what of their machine would fail them later, said in words at once.

Limits that may be raised are raised. What only may hurt is a line on standard error; what must fail
keeps the ranks from starting. ``LOCKSTEP_PREFLIGHT=off`` leaves all of it out.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep.train.ranks import Seat

SAID = "before the start: "
"""How the line begins that keeps ranks from starting."""
SHM_EACH = 32 << 20
"""Bytes of shared memory that a rank of NCCL takes, and a data loader's workers are glad of."""
MEMLOCK = 64 << 20
"""Bytes that a rank must be able to pin to speak over RDMA."""
FILES = 1024


@dataclass(frozen=True)
class Machine:
    """What ranks find here; none of a figure is not known, or has no limit."""

    shm: int | None = None
    """Free bytes of /dev/shm."""
    memlock: int | None = None
    files: int | None = None
    gpus: int = 0
    rdma: bool = False


@dataclass(frozen=True)
class Problem:
    """What is wrong, and whether ranks must fail for it."""

    text: str
    fatal: bool = False


def raised(which: int) -> int | None:
    """Raise a limit of this process, and so of its ranks, as far as may be; return it."""
    soft, hard = resource.getrlimit(which)
    if soft != hard:
        try:
            resource.setrlimit(which, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return None if soft == resource.RLIM_INFINITY else soft


def machine(root: Path = Path("/")) -> Machine:
    """Return what is here, with the limits raised."""
    try:
        free = os.statvfs(root / "dev/shm")
        shm: int | None = free.f_bavail * free.f_frsize
    except OSError:
        shm = None
    names = [one.name for one in (root / "dev").glob("nvidia*")]
    return Machine(
        shm,
        raised(resource.RLIMIT_MEMLOCK),
        raised(resource.RLIMIT_NOFILE),
        sum(name[len("nvidia") :].isdigit() for name in names),
        any((root / "dev/infiniband").glob("uverbs*")),
    )


def problems(here: Machine, env: Mapping[str, str], seat: Seat) -> Iterator[Problem]:
    """Yield what is wrong with *here* for the ranks of *seat*, as the pod's *env* has it."""
    told = env.get("PET_NPROC_PER_NODE", "")
    if told.isdigit() and int(told) != seat.local:
        text = f"PET_NPROC_PER_NODE is {told}, and the job has {seat.local} ranks in this pod"
        yield Problem(f"{text}, {seat.size} in all", True)
    if here.shm is not None and seat.local > 1 and here.shm < SHM_EACH * seat.local:
        want = SHM_EACH * seat.local >> 20
        text = f"/dev/shm has {here.shm >> 20} MiB free, and {seat.local} ranks want {want} MiB"  # noqa: S108
        text += ": mount an emptyDir with medium Memory there"
        # NCCL of one machine cannot do without; others may.
        yield Problem(text, here.gpus > 1 and env.get("NCCL_SHM_DISABLE") != "1")
    speaks = here.rdma and env.get("NCCL_IB_DISABLE") != "1"
    if speaks and here.memlock is not None and here.memlock < MEMLOCK:
        text = f"{here.memlock >> 10} KiB may be locked in memory, and RDMA wants all that it pins"
        yield Problem(f"{text}: give the container IPC_LOCK, or its runtime memlock=-1", True)
    if here.files is not None and here.files < FILES:
        text = f"{here.files} files may be open, and data loaders want {FILES} or more"
        yield Problem(f"{text}: raise the runtime's nofile")
    if 0 < here.gpus < seat.local:
        yield Problem(f"{seat.local} ranks share {here.gpus} GPUs")


def wrong(env: Mapping[str, str], seat: Seat) -> str:
    """Say on standard error what is wrong; return what must fail, empty where nothing must."""
    if env.get("LOCKSTEP_PREFLIGHT") == "off":
        return ""
    found = list(problems(machine(), env, seat))
    for one in found:
        print(f"lockstep-run: {one.text}", file=sys.stderr, flush=True)
    return next((SAID + one.text for one in found if one.fatal), "")
