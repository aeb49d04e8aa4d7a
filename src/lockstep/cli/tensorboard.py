"""``lockstep tensorboard``: the curves of a job's events in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from lockstep.cli import door
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput
from lockstep.cli.options import Namespaced
from lockstep.cli.places import (
    on_this_machine,
    put,
    show_link,
    until_ready,
)
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.compat.kubeflow.tensorboard import STORES, TENSORBOARDS
from lockstep.compat.kubeflow.tensorboard import app as tensorboard_of

app = App()


@app.command()
def tensorboard(
    logs: Annotated[str, "DIRECTORY|pvc://CLAIM/DIRECTORY|s3://...", "Where the events are."],
    *,
    name: Annotated[
        str, "Name of it; two of different names stand beside each other."
    ] = "tensorboard",
    show: Annotated[bool, "--print", "Print the link instead."] = False,
    target: Namespaced,
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
        await show_link(session, target, name, door.show_link if show else door.launch)

    run(target, work)


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
