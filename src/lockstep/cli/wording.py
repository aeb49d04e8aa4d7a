"""What people type who come from other schedulers, and what it is called here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_COMMANDS: Final = {
    "list": ("ps", "ls", "squeue", "qstat", "bjobs"),
    "list nodes": ("sinfo",),
    "delete": ("cancel", "rm", "kill", "scancel", "qdel", "bkill"),
    "submit": ("run", "create", "apply", "sbatch", "srun", "qsub", "bsub"),
    "suspend": ("stop", "pause", "hold"),
    "resume": ("start", "continue", "release"),
    "describe": ("show", "inspect"),
}
_OPTIONS: Final = {
    "--workers": ("--nodes", "--nnodes", "--num-nodes", "--ntasks", "--num-workers", "--replicas"),
    "--gpus": ("--gres", "--gpus-per-node", "--nproc-per-node", "--nproc", "--num-gpus"),
    "--cpu": ("--cpus", "--cpus-per-task", "--cores"),
    "--memory": ("--mem",),
    "--runtime": ("--time", "--walltime", "--time-limit"),
    "--queue": ("--partition",),
    "--name": ("--job-name",),
    "--after": ("--dependency",),
}


def command(word: str) -> str:
    """Return the command that *word* stands for elsewhere, or that lists the kind; else nothing."""
    for meant, words in _COMMANDS.items():
        if word in words:
            return meant
    from lockstep.cli import kinds

    try:
        short, _ = kinds.resource(word)
    except ValueError:
        return ""
    return f"list {kinds.plural(short)}"


def option(name: str, known: Sequence[str]) -> list[str]:
    """Return the option among *known* that *name* is elsewhere, or nothing."""
    name = name.replace("_", "-")
    return [meant for meant, names in _OPTIONS.items() if name in names and meant in known]
