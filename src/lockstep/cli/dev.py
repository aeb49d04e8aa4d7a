"""``lockstep dev``: a place to work in by one command."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.names import QUEUE_LABEL
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.api.resource import Resource
from lockstep.cli import door
from lockstep.cli.app import App, AtLeast
from lockstep.cli.connect import InNamespace, Session, run
from lockstep.cli.dev_job import job
from lockstep.cli.failure import BadInput
from lockstep.cli.options import Namespaced
from lockstep.cli.output import note, print_lines
from lockstep.cli.places import (
    Name,
    on_this_machine,
    put,
    show_link,
    state,
    until_ready,
)
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED
from lockstep.kube.errors import AlreadyExists, NotFound

app = App("Places to work in: JupyterLab, a shell, kernels that give idle GPUs back.")
app.command(context_settings={"ignore_unknown_options": True})(job)

IMAGE = "kubeflownotebookswg/jupyter-scipy:v1.10.0"
CLAIM_SIZE = "20Gi"
HOME = "/home/jovyan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the place is to have."""

    gpus: Annotated[int, AtLeast(0), "GPUs of each kernel of it."] = 0
    packages: Annotated[
        Path | None, "Lock of packages for its kernels: lines as of pip freeze."
    ] = None
    image: Annotated[str, "Image of its kernels."] = ""
    dataset: Annotated[list[str] | None, "Dataset, seen at /data/NAME; may be repeated."] = None
    queue: Annotated[str, "Queue in which it waits."] = ""
    idle: Annotated[str, "How long a kernel may idle until it is parked."] = "30m"
    home: Annotated[
        Path | None,
        typer.Option(
            help="Directory of this machine that is its home; by default the present one. On a "
            "cluster it gets a volume claim instead.",
            show_default=False,
        ),
    ] = None


@app.command()
async def up(
    session: InNamespace,
    name: Name,
    *,
    wish: Wish,
    wait: Annotated[bool, "Return when it is ready."] = True,
) -> None:
    """Make a place to work in, or bring the one of this name up to date, and say where it is.

    \b
    Examples:
      lockstep dev up ana --gpus 1
      lockstep dev up ana --packages requirements.lock --dataset imagenet
      lockstep ssh ana
    """
    lock = _lock(wish.packages)
    began = time.monotonic()
    await put(session, ENVIRONMENTS, _environment(name, wish, lock))
    await put(session, NOTEBOOKS, await _notebook(session, name, wish))
    if not wait:
        note(f"notebook/{name} is on its way; `lockstep dev list` shows it")
        return
    await until_ready(session, name)
    note(f"{name} is ready after {time.monotonic() - began:.1f} s")
    note(f"lockstep dev open {name} opens it")


@app.command("list")
async def list_(session: InNamespace) -> None:
    """List places to work in, and their kernels.

    Example: lockstep dev list
    """
    space = session.namespace
    kernels = (await session.client.list(KERNELS, space)).items
    lines = []
    for one in (await session.client.list(NOTEBOOKS, space)).items:
        lines.append(f"{one.metadata.name}  {state(one)}")
        for kernel in kernels:
            if kernel.spec.notebook == one.metadata.name:
                status = kernel.status
                about = f"  kernel {kernel.metadata.name[:8]}  {status.phase or 'Waiting'}"
                lines.append(f"{about}  {status.message}".rstrip())
    print_lines(lines or [f"nothing in namespace {space}; `lockstep dev up NAME` makes one"])


@app.command()
async def stop(session: InNamespace, name: Name) -> None:
    """Stop a place: its processes end and its home stays.

    The notebook server ends its kernels with it: what they hold stays only if it was parked.

    Example: lockstep dev stop ana
    """
    await _annotate(session, name, timestamp.show(time.time()))


@app.command()
async def resume(session: InNamespace, name: Name) -> None:
    """Start a stopped place again.

    Example: lockstep dev resume ana
    """
    await _annotate(session, name, None)


@app.command()
async def delete(session: InNamespace, name: Name) -> None:
    """Delete a place with its kernels; its home stays.

    Example: lockstep dev delete ana
    """
    space = session.namespace
    await session.client.delete(NOTEBOOKS, name, space, propagation="Background")
    for kernel in (await session.client.list(KERNELS, space)).items:
        if kernel.spec.notebook == name:
            await session.client.delete(KERNELS, kernel.metadata.name, space)
    try:
        await session.client.delete(ENVIRONMENTS, name, space)
    except NotFound:
        return


@app.command("open")
def open_(
    name: Name,
    *,
    show: Annotated[bool, "--print", "Print the link instead."] = False,
    target: Namespaced,
) -> None:
    """Open a place in the browser. The link works once, for two minutes, and signs you in.

    Example: lockstep dev open ana
    """
    shown = door.show_link if show else door.launch
    run(target, lambda session: show_link(session, target, name, shown))


async def _annotate(session: Session, name: str, value: str | None) -> None:
    body = {"metadata": {"annotations": {STOPPED: value}}}
    await session.client.patch(NOTEBOOKS, name, body, session.namespace)


def _lock(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--packages {path}: {error}") from error
    kept = [line for line in lines if line and not line.startswith("#")]
    loose = next((one for one in kept if not one.startswith("--") and not _exact(one)), None)
    if loose is not None:
        raise BadInput(
            f"--packages {path}: {loose!r} has no exact version",
            "write a lock: pip freeze > FILE, or uv pip compile requirements.txt -o FILE",
        )
    return kept


def _exact(line: str) -> bool:
    return "==" in line or " @ " in line


def _environment(name: str, wish: Wish, lock: list[str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"idle": {"after": wish.idle}}
    spec |= {"resources": {"nvidia.com/gpu": wish.gpus}} if wish.gpus else {}
    spec |= {"packages": lock} if lock else {}
    spec |= {"image": wish.image} if wish.image else {}
    spec |= {"queue": wish.queue} if wish.queue else {}
    if wish.dataset:
        spec["volumes"] = [
            {"claim": one, "path": f"/data/{one}", "readOnly": True} for one in wish.dataset
        ]
    return {"metadata": {"name": name}, "spec": spec}


async def _notebook(session: Session, name: str, wish: Wish) -> dict[str, Any]:
    home, volume = await _home(session, name, wish)
    container = {
        "name": name,
        "image": IMAGE,
        "workingDir": home,
        "volumeMounts": [{"name": "home", "mountPath": home}],
    }
    labels = {QUEUE_LABEL: wish.queue} if wish.queue else {}
    spec = {"containers": [container], "volumes": [{"name": "home", **volume}]}
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"lockstep.dev/kernels": "remote"},
        },
        "spec": {"template": {"spec": spec}},
    }


async def _home(session: Session, name: str, wish: Wish) -> tuple[str, dict[str, Any]]:
    """Return where the home is and the volume that it is."""
    if wish.home is not None or await on_this_machine(session):
        place = str((wish.home or Path.cwd()).absolute())
        return place, {"hostPath": {"path": place, "type": "Directory"}}
    claim = f"workspace-{name}"
    body = {
        "metadata": {"name": claim},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": CLAIM_SIZE}},
        },
    }
    kind = "PersistentVolumeClaim"
    claims = Resource("", "v1", "persistentvolumeclaims", kind, True, AnyObject)
    try:
        await session.client.create(claims, body, session.namespace)
    except AlreadyExists:
        note(f"its home is the claim {claim}, which is there already")
    return HOME, {"persistentVolumeClaim": {"claimName": claim}}
