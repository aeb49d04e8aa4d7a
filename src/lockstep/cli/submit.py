"""``lockstep submit``: a job from flags, or objects from a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.cli.build import BadFlag, Flags, training_job
from lockstep.cli.load import Document, check, documents
from lockstep.cli.options import Context, DryRun, Kubeconfig, Namespace
from lockstep.cli.output import Format, encode

app = typer.Typer(rich_markup_mode=None)

Json = dict[str, Any]
Where = tuple[Path | None, str | None, str | None]
"""Kubeconfig, context and namespace."""


class Framework(StrEnum):
    """Whose launch convention the pods get."""

    PYTORCH = "pytorch"
    MPI = "mpi"
    PLAIN = "plain"


@app.command()
def submit(
    framework: Annotated[
        Framework | None, typer.Argument(help="Whose launch convention the pods get.")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="What each pod runs.")
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="YAML or JSON with any objects; - is standard input."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the job; made up when left out.")] = "",
    workers: Annotated[int, typer.Option(min=1, help="Pods of the job.")] = 1,
    minimum: Annotated[
        int | None, typer.Option("--min", min=1, help="Fewest workers it can run with.")
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", min=1, help="Most workers it can use.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes a worker starts; one per GPU by default.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each worker.")] = 0,
    cpu: Annotated[str, typer.Option(help="CPUs of each pod: 4, 500m.")] = "",
    memory: Annotated[str, typer.Option(help="Memory of each pod: 16Gi.")] = "",
    image: Annotated[
        str, typer.Option(help="Container image; none is needed on process and simulated nodes.")
    ] = "",
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="May be repeated.")
    ] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE:MOUNT[:ro]", help="Host path or claim; may be repeated."),
    ] = None,
    working_dir: Annotated[str, typer.Option(help="Directory in which the command runs.")] = "",
    node_label: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="Only on nodes with this label; may be repeated."),
    ] = None,
    queue: Annotated[str, typer.Option(help="Queue that it waits in.")] = "default",
    priority: Annotated[str, typer.Option(help="PriorityClass.")] = "",
    topology: Annotated[str, typer.Option(help="Tier that all pods must share: leaf.")] = "",
    prefer_topology: Annotated[
        str, typer.Option(help="Tier that the pods should share where possible.")
    ] = "",
    max_restarts: Annotated[
        int | None, typer.Option(min=0, help="Restarts after which it has failed.")
    ] = None,
    max_wait: Annotated[str, typer.Option(help="Longest time to wait for a place: 2h.")] = "",
    suspend: Annotated[bool, typer.Option("--suspend", help="Submit it suspended.")] = False,
    dry_run: DryRun = False,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Send nothing; say when it would start, and where.")
    ] = False,
    output: Annotated[
        Format,
        typer.Option("--output", "-o", help="With --dry-run: yaml or json; with --what-if: json."),
    ] = Format.YAML,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end of the job.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Print its logs until it ends.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Submit a job from flags, or objects from a file.

    With --wait or --follow the exit code is 0 when the job succeeded and 1 when it failed.

    \b
    Examples:
      lockstep submit pytorch --name bert --workers 4 --gpus 8 --image pytorch/pytorch \\
          --topology leaf --volume /data:/data:ro -- torchrun train.py --epochs 3
      lockstep submit plain --follow -- python -c 'print("hello")'
      lockstep submit -f job.yaml --wait
      lockstep submit mpi --workers 2 --dry-run -- mpirun ./a.out
      lockstep submit -f job.yaml --what-if
    """
    target = (kubeconfig, context, namespace)
    if file is not None:
        found = _from_file(file, framework)
        if what_if:
            _ask(found, target, output)
        else:
            _send(found, target, dry_run, output, wait=wait, follow=follow)
        return
    flags = Flags(
        framework=framework.value if framework else "",
        command=tuple(command or ()),
        name=name,
        workers=workers,
        minimum=minimum,
        maximum=maximum,
        processes=processes,
        image=image,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        env=tuple(env or ()),
        volumes=tuple(volume or ()),
        node_labels=tuple(node_label or ()),
        working_dir=working_dir,
        queue=queue,
        priority=priority,
        topology=topology,
        prefer_topology=prefer_topology,
        max_restarts=max_restarts,
        max_wait=max_wait,
        suspend=suspend,
    )
    found = [_from_flags(flags)]
    if what_if:
        _ask(found, target, output)
    else:
        _send(found, target, dry_run, output, wait=wait, follow=follow)


def _ask(found: list[Document], where: Where, output: Format) -> None:
    for document in found:
        check(document)
    from lockstep.cli.connect import Target, run
    from lockstep.cli.whatif import lines, what_if

    objects = [document.obj for document in found]
    answers = run(Target(*where), lambda session: what_if(session, objects))
    if output is Format.JSON:
        print(encode([answer.tree() for answer in answers], output), end="")
        return
    for answer in answers:
        print("\n".join(lines(answer)))


def _send(
    found: list[Document],
    where: Where,
    dry_run: bool,
    output: Format,
    *,
    wait: bool,
    follow: bool,
) -> None:
    for document in found:
        check(document)
    if dry_run:
        _print(found, output)
        return
    # What follows needs a connection, which checking and a dry run do without.
    from lockstep.cli.connect import Target, run
    from lockstep.cli.sending import send

    objects = [document.obj for document in found]
    run(Target(*where), lambda session: send(session, objects, wait=wait, follow=follow))


def _from_file(file: Path, framework: Framework | None) -> list[Document]:
    if framework is not None:
        raise typer.BadParameter("choose one of a framework and --file", param_hint="--file")
    return documents(file)


def _from_flags(flags: Flags) -> Document:
    if not flags.framework:
        raise typer.BadParameter(
            "name one of pytorch, mpi, plain, or give a file with -f", param_hint="FRAMEWORK"
        )
    try:
        return Document(training_job(flags), "the flags")
    except BadFlag as error:
        raise typer.BadParameter(str(error), param_hint=error.flag) from error


def _print(found: list[Document], output: Format) -> None:
    format_ = Format.JSON if output is Format.JSON else Format.YAML
    between = "" if format_ is Format.JSON else "---\n"
    print(between.join(encode(document.obj, format_) for document in found), end="")
