"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli import completion
from lockstep.cli.output import Format

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Which API server; by default $KUBECONFIG, then that of `lockstep up`."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; that of the context by default.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In every namespace.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print it.")]
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Go on printing what changes, until interrupted.")
]
Named = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="NAME of a job, or KIND/NAME.", autocompletion=completion.objects
    ),
]
OneNamed = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="NAME of a job, KIND/NAME, or KIND NAME.",
        autocompletion=completion.objects,
    ),
]
SeveralNamed = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="NAMEs of jobs, or KIND/NAME.", autocompletion=completion.objects
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the object and send nothing.")]
Force = Annotated[
    bool, typer.Option("--force", help="Delete queues that have children or running jobs too.")
]
Leashed = Annotated[
    bool, typer.Option("--leashed", help="End when standard input is closed.", hidden=True)
]
