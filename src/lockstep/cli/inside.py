"""``exec``, ``attach``, ``cp`` and ``port-forward``: into the pods of jobs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli import kinds
from lockstep.cli.app import App, AtLeast
from lockstep.cli.completion import Named
from lockstep.cli.connect import InNamespace, Session, run
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.log_streams import Request, running_pod
from lockstep.cli.naming import resolve
from lockstep.cli.options import Namespaced

app = App()

Container = Annotated[str, "--container", "-c", "Container; the pod's first by default."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which pod of a job."""

    role: Annotated[str, "Pod of this role of the job."] = ""
    index: Annotated[
        int | None, AtLeast(0), "Pod with this index in its role; the first by default."
    ] = None

    async def pod(self, session: Session, ref: kinds.Reference) -> str:
        """Return the name of the pod that runs; of an array, one of its first job that has one.

        Raises:
            CommandFailed: when none does.
        """
        *others, last = await resolve(session, ref)
        for one in others:
            with suppress(CommandFailed):
                return await self._pod_of(session, one)
        return await self._pod_of(session, last)

    async def _pod_of(self, session: Session, ref: kinds.Reference) -> str:
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
def exec_(
    name: Named,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to run in the container.")
    ],
    *,
    stdin: Annotated[bool, "--stdin", "-i", "Pass standard input on."] = False,
    tty: Annotated[bool, "--tty", "-t", "Give it a terminal."] = False,
    container: Container = "",
    which: Which,
    target: Namespaced,
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

    raise typer.Exit(run(target, work))


@app.command()
def attach(name: Named, *, container: Container = "", which: Which, target: Namespaced) -> None:
    """Show what a running container writes from now on; Ctrl-C leaves it running.

    Example: lockstep attach digits --index 0
    """
    from lockstep.cli.remote import Command, converse

    ref = _subject(name)

    async def work(session: Session) -> int:
        wanted = Command(await which.pod(session, ref), (), container, False, False)
        return await converse(session, wanted)

    raise typer.Exit(run(target, work))


@app.command()
async def cp(
    session: InNamespace,
    source: Annotated[str, "FROM", "PATH, or NAME:PATH."],
    destination: Annotated[str, "TO", "PATH, or NAME:PATH."],
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

    (from_, path), (to, place) = _side(source), _side(destination)
    if (from_ is None) == (to is None):
        raise BadInput("one of FROM and TO is in a pod: NAME:PATH", "lockstep cp digits:/out/x ./x")
    if from_ is not None:
        pod = await which.pod(session, from_)
        await download(session, pod, container, path, Path(place))
    elif to is not None:
        pod = await which.pod(session, to)
        await upload(session, pod, container, Path(path), place)


def _side(text: str) -> tuple[kinds.Reference | None, str]:
    name, colon, path = text.partition(":")
    if not colon or name.startswith((".", "/")):
        return None, text
    return _subject(name), path or "."


@app.command("port-forward")
async def port_forward(
    session: InNamespace,
    name: Named,
    ports: Annotated[list[str], "[LOCAL:]PORT...", "8080, 8000:80; 0:80 any free."],
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
    await forward(session, await which.pod(session, ref), pairs)


def _ports(text: str) -> tuple[int, int]:
    local, _, remote = text.rpartition(":")
    try:
        found = int(local or remote), int(remote)
    except ValueError:
        raise ValueError(f"{text!r} is not PORT or LOCAL:PORT") from None
    if not (0 <= found[0] < 1 << 16 and 0 < found[1] < 1 << 16):
        raise ValueError(f"{text!r}: ports go from 1 to 65535")
    return found
