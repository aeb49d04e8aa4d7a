"""``lockstep dev job``: what was tried in a place, as a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.api.names import QUEUE_LABEL
from lockstep.api.notebooks import ENVIRONMENTS
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.app import AtLeast
from lockstep.cli.carrying import carry
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput
from lockstep.cli.flags import Carry
from lockstep.cli.options import Namespaced
from lockstep.cli.output import note
from lockstep.cli.places import Name, packages_cache
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.kube.code.store import adopt
from lockstep.kube.errors import AlreadyExists
from lockstep.notebooks.core.saved_job import saved_job


def job(
    name: Name,
    command: Annotated[
        list[str],
        typer.Argument(metavar="NOTEBOOK.ipynb | -- COMMAND...", help="What the job runs."),
    ],
    *,
    job_name: Annotated[str, "--name", "Name of the job; NAME-job when left out."] = "",
    workers: Annotated[int, AtLeast(1), "Pods that run it together."] = 1,
    queue: Annotated[str, "Queue of the job; the place's when left out."] = "",
    code: Annotated[Path | None, "DIR", "Send this directory along and run in it."] = None,
    target: Namespaced,
) -> None:
    """Run a notebook or a command as a job in the environment of a place.

    The job has the place's image, packages, variables, datasets and home. A notebook runs from its
    first cell to its last, and its output is written into it. It runs in the place's home, or with
    --code in a copy of a directory of this machine.

    \b
    Examples:
      lockstep dev job ana analysis.ipynb
      lockstep dev job ana --workers 2 --name night -- python train.py --epochs 10
      lockstep dev job ana --code . -- python train.py
    """

    async def work(session: Session) -> None:
        environment = await session.client.get(ENVIRONMENTS, name, session.namespace)
        notebook = await session.client.get(NOTEBOOKS, name, session.namespace)
        theirs = notebook.metadata.labels.get(QUEUE_LABEL, "")
        body = saved_job(
            job_name or f"{name}-job",
            environment.spec,
            notebook.pod_spec,
            command,
            workers=workers,
            packages_root=await packages_cache(session),
            queue=queue or environment.spec.queue or theirs or "default",
        )
        if code is not None:
            body["spec"]["roles"][0]["template"]["spec"]["containers"][0].pop("workingDir", None)
        parts = await carry(session, [body], Carry(code=code), "")
        try:
            made = await session.client.create(TRAINING_JOBS, body, session.namespace)
        except AlreadyExists as error:
            taken = body["metadata"]["name"]
            raise BadInput(
                f"--name {taken}: a job of that name exists", f"lockstep delete {taken}"
            ) from error
        await adopt(session.client, session.namespace, parts, [made.metadata])
        note(f"trainingjob/{made.metadata.name} created; lockstep logs {made.metadata.name} -f")

    run(target, work)
