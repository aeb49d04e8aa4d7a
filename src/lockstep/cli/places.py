"""Places to work in, as commands see them: which, whether ready, and by what link."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated, Any, Final

from lockstep.api.core import NODES
from lockstep.api.names import NODE_KIND_LABEL
from lockstep.cli import door
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note
from lockstep.cli.target import Target
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED, Notebook
from lockstep.console import links
from lockstep.kube.errors import AlreadyExists, Forbidden, NotFound

READY_SECONDS: Final = 300.0
Name = Annotated[str, "Name of the place."]


async def on_this_machine(session: Session) -> bool:
    """Return whether pods run as processes of a machine; who may not see nodes has no such one."""
    try:
        selector = f"{NODE_KIND_LABEL}=process"
        return bool((await session.client.list(NODES, label_selector=selector)).items)
    except Forbidden:
        return False


async def put(session: Session, resource: Any, body: dict[str, Any]) -> None:
    """Create an object, or bring the one of its name up to date and start it again."""
    try:
        await session.client.create(resource, body, session.namespace)
    except AlreadyExists:
        name = body["metadata"]["name"]
        metadata = {"annotations": {STOPPED: None}} if resource is NOTEBOOKS else {}
        change = {"metadata": metadata, "spec": body["spec"]}
        await session.client.patch(resource, name, change, session.namespace)


async def until_ready(session: Session, name: str) -> None:
    """Wait until a notebook answers; say what it waits for.

    Raises:
        CommandFailed: when that takes too long.
    """
    end, told = time.monotonic() + READY_SECONDS, ""
    while time.monotonic() < end:
        try:
            notebook = await session.client.get(NOTEBOOKS, name, session.namespace)
            seen = state(notebook)
        except NotFound:
            seen = "Waiting: for its controller"
        if seen == "Ready":
            return
        if seen not in (told, "Stopped"):
            note(f"{name}: {seen}")
            told = seen
        await asyncio.sleep(0.2)
    raise CommandFailed(
        f"{name} is not ready after {READY_SECONDS:.0f} s: {told}",
        f"lockstep logs pod/{name}-0; kubectl describe pod {name}-0",
    )


def state(notebook: Notebook) -> str:
    """Return how a notebook is, in a word, and why where it waits."""
    if STOPPED in notebook.metadata.annotations:
        return "Stopped"
    status = notebook.status
    if status.get("readyReplicas"):
        return "Ready"
    for one in status.get("conditions", []):
        if one.get("status") == "False" and one.get("message"):
            return f"Waiting: {one['message']}"
    waiting = (status.get("containerState") or {}).get("waiting") or {}
    return f"Waiting: {waiting.get('message') or waiting.get('reason') or 'for its pod'}"


async def show_link(session: Session, target: Target, name: str, show: door.Show) -> None:
    """Show the link by which a browser enters a notebook; it works once, for two minutes.

    Where no console runs on this machine for the cluster, one is served until it is interrupted.
    """
    await session.client.get(NOTEBOOKS, name, session.namespace)
    kubeconfig = door.kubeconfig_file(target.kubeconfig)
    grant = links.Grant(str(kubeconfig), target.context or "")
    path = f"/open/{session.namespace}/{name}"
    if (found := door.of_machine(kubeconfig)) is not None:
        show(found.state, found.link(grant, path))
        return
    note("no console of this machine serves the cluster: this command does, until Ctrl-C")
    await door.serve(grant, path, show)


async def packages_cache(session: Session) -> str:
    """Return the directory of each node in which packages of the session's namespace are built."""
    root = Path("/var/cache/lockstep")
    if await on_this_machine(session):
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"
    return str(root / "environments" / session.namespace)
