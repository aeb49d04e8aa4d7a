"""The options of ``lockstep submit`` that describe a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.app import AtLeast
from lockstep.cli.completion import of


class Framework(StrEnum):
    """Whose launch convention the pods get."""

    PYTORCH = "pytorch"
    MPI = "mpi"
    PLAIN = "plain"
    TENSORFLOW = "tensorflow"
    JAX = "jax"
    XGBOOST = "xgboost"
    PADDLE = "paddle"
    MEGATRON = "megatron"
    DEEPSPEED = "deepspeed"
    HOROVOD = "horovod"
    RAY = "ray"
    SPARK = "spark"
    FLINK = "flink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags, as given."""

    framework: Annotated[
        Framework | None, typer.Argument(help="Whose launch convention the pods get.")
    ] = None
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="What each pod runs.")
    ] = None
    name: Annotated[str, "Name of the job; made up when left out."] = ""
    workers: Annotated[int, AtLeast(1), "Pods of the job."] = 1
    minimum: Annotated[int | None, "--min", AtLeast(1), "Fewest workers it can run with."] = None
    maximum: Annotated[int | None, "--max", AtLeast(1), "Most workers it can use."] = None
    processes: Annotated[
        int | None, AtLeast(1), "Processes a worker starts; one per GPU by default."
    ] = None
    gpus: Annotated[float, AtLeast(0), "GPUs of each worker; 0.5 is half of one."] = 0
    cpu: Annotated[str, "CPUs of each pod, and its limit: 4, 500m."] = ""
    memory: Annotated[str, "Memory of each pod, and its limit: 16Gi."] = ""
    memory_limit: Annotated[str, "Memory at which a pod is killed, where it is not --memory."] = ""
    image: Annotated[str, "Container image; none is needed on nodes of Lockstep's own."] = ""
    env: Annotated[list[str] | None, "--env", "-e", "K=V", "May be repeated."] = None
    volumes: Annotated[
        list[str] | None, "--volume", "SOURCE:MOUNT[:ro]", "Host path or claim; may be repeated."
    ] = None
    working_dir: Annotated[
        str, "Directory in which the command runs; without an image the present one."
    ] = ""
    node_labels: Annotated[
        list[str] | None, "--node-label", "K=V", "Only on nodes with this label; may be repeated."
    ] = None
    queue: Annotated[str, "Queue that it waits in.", of("queue")] = "default"
    priority: Annotated[str, "PriorityClass."] = ""
    topology: Annotated[str, "Tier that all pods must share: leaf."] = ""
    prefer_topology: Annotated[str, "Tier that the pods should share where possible."] = ""
    max_restarts: Annotated[int | None, AtLeast(0), "Restarts after which it has failed."] = None
    spares: Annotated[int, AtLeast(0), "Pods that stand by to take the place of a lost one."] = 0
    capture: Annotated[
        bool,
        "--capture/--no-capture",
        "Keep a torch program that does not call lockstep.train, and go on at its step.",
    ] = True
    max_wait: Annotated[str, "Longest time to wait for a place: 2h."] = ""
    launcher: Annotated[
        bool,
        "--launcher/--no-launcher",
        "Put lockstep-run in front of the command, where the framework has use for it.",
    ] = True
    suspend: Annotated[bool, "--suspend", "Submit it suspended."] = False
    simulated: Annotated[
        bool, "--simulated", "Run on simulated nodes: the command is not executed."
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """Which code goes with the job, as given."""

    code: Annotated[
        Path | None,
        "--code",
        "DIR",
        "Send this directory along and run in it; the present one by itself where the "
        "command names a file of it and the job runs elsewhere or has an image.",
    ] = None
    no_code: Annotated[bool, "--no-code", "Send no directory along, and record none."] = False
