"""The options of ``lockstep submit`` that describe a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

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
    name: Annotated[str, typer.Option(help="Name of the job; made up when left out.")] = ""
    workers: Annotated[int, typer.Option(min=1, help="Pods of the job.")] = 1
    minimum: Annotated[
        int | None, typer.Option("--min", min=1, help="Fewest workers it can run with.")
    ] = None
    maximum: Annotated[
        int | None, typer.Option("--max", min=1, help="Most workers it can use.")
    ] = None
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes a worker starts; one per GPU by default.")
    ] = None
    gpus: Annotated[float, typer.Option(min=0, help="GPUs of each worker; 0.5 is half of one.")] = 0
    cpu: Annotated[str, typer.Option(help="CPUs of each pod, and its limit: 4, 500m.")] = ""
    memory: Annotated[str, typer.Option(help="Memory of each pod, and its limit: 16Gi.")] = ""
    memory_limit: Annotated[
        str, typer.Option(help="Memory at which a pod is killed, where it is not --memory.")
    ] = ""
    image: Annotated[
        str, typer.Option(help="Container image; none is needed on nodes of Lockstep's own.")
    ] = ""
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="May be repeated.")
    ] = None
    volumes: Annotated[
        list[str] | None,
        typer.Option(
            "--volume", metavar="SOURCE:MOUNT[:ro]", help="Host path or claim; may be repeated."
        ),
    ] = None
    working_dir: Annotated[
        str,
        typer.Option(help="Directory in which the command runs; without an image the present one."),
    ] = ""
    node_labels: Annotated[
        list[str] | None,
        typer.Option(
            "--node-label", metavar="K=V", help="Only on nodes with this label; may be repeated."
        ),
    ] = None
    queue: Annotated[
        str, typer.Option(help="Queue that it waits in.", autocompletion=of("queue"))
    ] = "default"
    priority: Annotated[str, typer.Option(help="PriorityClass.")] = ""
    topology: Annotated[str, typer.Option(help="Tier that all pods must share: leaf.")] = ""
    prefer_topology: Annotated[
        str, typer.Option(help="Tier that the pods should share where possible.")
    ] = ""
    max_restarts: Annotated[
        int | None, typer.Option(min=0, help="Restarts after which it has failed.")
    ] = None
    spares: Annotated[
        int, typer.Option(min=0, help="Pods that stand by to take the place of a lost one.")
    ] = 0
    max_wait: Annotated[str, typer.Option(help="Longest time to wait for a place: 2h.")] = ""
    launcher: Annotated[
        bool,
        typer.Option(
            "--launcher/--no-launcher",
            help="Put lockstep-run in front of the command, where the framework has use for it.",
        ),
    ] = True
    suspend: Annotated[bool, typer.Option("--suspend", help="Submit it suspended.")] = False
    simulated: Annotated[
        bool,
        typer.Option("--simulated", help="Run on simulated nodes: the command is not executed."),
    ] = False
