"""``lockstep tensorboard``: the curves of a job's events in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput
from lockstep.cli.grouped import grouped
from lockstep.cli.output import note, print_lines
from lockstep.cli.places import Where, link_of, on_this_machine, put, until_ready
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.compat.kubeflow.tensorboard import STORES, TENSORBOARDS
from lockstep.compat.kubeflow.tensorboard import app as tensorboard_of

app = typer.Typer(rich_markup_mode=None)


@app.command()
@grouped
def tensorboard(
    logs: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY|pvc://CLAIM/DIRECTORY|s3://...", help="Where the events are."
        ),
    ],
    *,
    name: Annotated[
        str, typer.Option(help="Name of it; two of different names stand beside each other.")
    ] = "tensorboard",
    show: Annotated[bool, typer.Option("--print", help="Print the link instead.")] = False,
    where: Where,
) -> None:
    """Show the curves of a job's events in the browser.

    It waits in a queue as a notebook does; `lockstep dev stop NAME` ends it and `dev resume NAME`
    brings it back. A directory of this machine needs a node that runs pods as its processes.

    \b
    Examples:
      lockstep tensorboard runs/
      lockstep tensorboard pvc://results/llm --name llm
      lockstep tensorboard s3://bucket/runs --print
    """

    async def work(session: Session) -> None:
        if logs.startswith(("pvc://", *STORES)):
            body = {"metadata": {"name": name}, "spec": {"logspath": logs}}
            await put(session, TENSORBOARDS, body)
        else:
            on_machine = await on_this_machine(session)
            await put(session, NOTEBOOKS, _of_directory(name, logs, on_machine=on_machine))
        await until_ready(session, name)
        link = await link_of(session, name)
        if show:
            print_lines([link])
        else:
            note(link)
            typer.launch(link)

    run(where.target(), work)


def _of_directory(name: str, logs: str, *, on_machine: bool) -> dict[str, Any]:
    place = Path(logs).absolute()
    if not place.is_dir():
        raise BadInput(f"{logs}: no such directory", "name the directory that the job writes to")
    if not on_machine:
        raise BadInput(
            f"{logs}: no node of this cluster sees this machine's directories",
            "name a claim, as pvc://CLAIM/DIRECTORY, or a store, as s3://BUCKET/DIRECTORY",
        )
    volume = {"hostPath": {"path": str(place), "type": "Directory"}}
    return tensorboard_of(name, str(place), volume, {})
