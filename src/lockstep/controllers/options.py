"""What the command line says of the controllers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of ``lockstep controllers`` beside those of every part."""

    closed_days: Annotated[
        Path | None, "With --records: folder into which days that are over go as Parquet."
    ] = None
    records: Annotated[
        Path | None, "Record in this SQLite file who used which GPU; not at all without it."
    ] = None
    gateway: Annotated[str, "URL at which servers of notebooks reach `lockstep gateway`."] = ""
    environments: Annotated[str, "Directory of each node in which packages are built."] = ""
    artefacts: Annotated[
        Path | None, "Directory of the one machine for artefacts of pipelines that name no store."
    ] = None
    pool_commands: Annotated[
        Path | None,
        "Directory of programs that NodePools may name as their provider; none without it.",
    ] = None
    node_lifecycle: Annotated[
        bool,
        "Taint nodes that fall silent and evict their pods, and serve Deployments, "
        "StatefulSets, DaemonSets and CronJobs, where there is no kube-controller-manager that "
        "does.",
    ] = False
