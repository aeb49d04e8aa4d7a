"""``exec``, ``attach``, ``cp`` and ``port-forward``: into the pods of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import BadInput
from lockstep.cli.grouped import grouped
from lockstep.cli.log_streams import Request, running_pod
from lockstep.cli.options import Context, Kubeconfig, Named, Namespace
from lockstep.cli.usage import usage

app = typer.Typer(rich_markup_mode=None)

Container = Annotated[
    str, typer.Option("--container", "-c", help="Container; the pod's first by default.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which pod of a job, and which cluster."""

    role: Annotated[str, typer.Option(help="Pod of this role of the job.")] = ""
    index: Annotated[
        int | None,
        typer.Option(min=0, help="Pod with this index in its role; the first by default."),
    ] = None
    namespace: Namespace = None
    kubeconfig: Kubeconfig = None
    context: Context = None

    def target(self) -> Target:
        """Return which cluster and namespace are meant."""
        return Target(self.kubeconfig, self.context, self.namespace)

    async def pod(self, session: Session, ref: kinds.Reference) -> str:
        """Return the name of the pod that runs.

        Raises:
            CommandFailed: when none does.
        """
        if ref.kind == "pod":
            return ref.name
        return await running_pod(session, Request(ref.name, role=self.role, index=self.index))


def _subject(name: str) -> kinds.Reference:
    with usage("NAME"):
        ref = kinds.reference(name)
        if ref.kind not in ("job", "pod"):
            raise ValueError(f"{ref} has no containers; name a job, or pod/NAME")
    return ref


@app.command("exec")
@grouped
def exec_(
    name: Named,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to run in the container.")
    ],
    *,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass standard input on.")] = False,
    tty: Annotated[bool, typer.Option("--tty", "-t", help="Give it a terminal.")] = False,
    container: Container = "",
    which: Which,
) -> None:
    """Run a command in a container of a job's pod; its exit code is this one's.

    \b
    Examples:
      lockstep exec digits -- nvidia-smi
      lockstep exec digits --index 1 -it -- bash
      lockstep exec pod/digits-worker-0 -- ps aux
    """
    from lockstep.cli.remote import Command, converse

    ref = _subject(name)

    async def work(session: Session) -> int:
        wanted = Command(await which.pod(session, ref), tuple(command), container, stdin, tty)
        return await converse(session, wanted)

    raise typer.Exit(run(which.target(), work))


@app.command()
@grouped
def attach(name: Named, *, container: Container = "", which: Which) -> None:
    """Show what a running container writes from now on; Ctrl-C leaves it running.

    Example: lockstep attach digits --index 0
    """
    from lockstep.cli.remote import Command, converse

    ref = _subject(name)

    async def work(session: Session) -> int:
        wanted = Command(await which.pod(session, ref), (), container, False, False)
        return await converse(session, wanted)

    raise typer.Exit(run(which.target(), work))


@app.command()
@grouped
def cp(
    source: Annotated[str, typer.Argument(metavar="FROM", help="PATH, or NAME:PATH.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="PATH, or NAME:PATH.")],
    *,
    container: Container = "",
    which: Which,
) -> None:
    """Copy files and directories into a job's pod or out of it; the pod needs `tar`.

    \b
    Examples:
      lockstep cp digits:/out/model.pt ./model.pt
      lockstep cp ./data pod/digits-worker-0:/tmp
    """
    from lockstep.cli.remote import download, upload

    (from_, path), (to, place) = _side(source), _side(target)
    if (from_ is None) == (to is None):
        raise BadInput("one of FROM and TO is in a pod: NAME:PATH", "lockstep cp digits:/out/x ./x")

    async def work(session: Session) -> None:
        if from_ is not None:
            pod = await which.pod(session, from_)
            await download(session, pod, container, path, Path(place))
        elif to is not None:
            pod = await which.pod(session, to)
            await upload(session, pod, container, Path(path), place)

    run(which.target(), work)


def _side(text: str) -> tuple[kinds.Reference | None, str]:
    name, colon, path = text.partition(":")
    if not colon or name.startswith((".", "/")):
        return None, text
    return _subject(name), path or "."


@app.command("port-forward")
@grouped
def port_forward(
    name: Named,
    ports: Annotated[
        list[str], typer.Argument(metavar="[LOCAL:]PORT...", help="8080, 8000:80; 0:80 any free.")
    ],
    *,
    which: Which,
) -> None:
    """Serve ports of a job's pod on 127.0.0.1 until interrupted.

    Example: lockstep port-forward digits 6006
    """
    from lockstep.cli.forwarding import forward

    ref = _subject(name)
    with usage("PORT"):
        pairs = [_ports(one) for one in ports]

    async def work(session: Session) -> None:
        await forward(session, await which.pod(session, ref), pairs)

    run(which.target(), work)


def _ports(text: str) -> tuple[int, int]:
    local, _, remote = text.rpartition(":")
    try:
        found = int(local or remote), int(remote)
    except ValueError:
        raise ValueError(f"{text!r} is not PORT or LOCAL:PORT") from None
    if not (0 <= found[0] < 1 << 16 and 0 < found[1] < 1 << 16):
        raise ValueError(f"{text!r}: ports go from 1 to 65535")
    return found
