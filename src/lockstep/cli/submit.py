"""``lockstep submit``: a job from flags, or objects from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.app import App, given_of
from lockstep.cli.build import BadFlag, training_job
from lockstep.cli.flags import Carry, Flags, Framework
from lockstep.cli.load import Document, check, documents
from lockstep.cli.options import DryRun, Namespaced
from lockstep.cli.output import Format, encode
from lockstep.cli.submit_more import More
from lockstep.cli.target import Target

app = App()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """What becomes of the objects."""

    dry_run: DryRun = False
    what_if: Annotated[bool, "--what-if", "Send nothing; say when it would start, and where."] = (
        False
    )
    output: Annotated[
        Format, "--output", "-o", "With --dry-run: yaml or json; with --what-if: json."
    ] = Format.YAML
    wait: Annotated[bool, "--wait", "Wait for the end of the job."] = False
    replace: Annotated[bool, "--replace", "End and delete a job of that name first."] = False
    follow: Annotated[bool, "--follow", "Print its logs until it ends."] = False


@app.command()
def submit(
    *,
    file: Annotated[
        Path | None, "--file", "-f", "YAML or JSON with any objects; - is standard input."
    ] = None,
    flags: Flags,
    more: More,
    carry: Carry,
    sending: Sending,
    target: Namespaced,
) -> None:
    """Submit a job from flags, or objects from a file.

    A name that another job has is an error; --replace ends and deletes that job first. A file
    changes jobs that have not ended.

    With --wait or --follow the exit code is 0 when the job succeeded and 1 when it failed.

    \b
    Examples:
      lockstep submit pytorch --name bert --workers 4 --gpus 8 --image pytorch/pytorch \\
          --topology leaf --volume /data:/data:ro -- torchrun train.py --epochs 3
      lockstep submit plain --follow -- python -c 'print("hello")'
      lockstep submit -f job.yaml --wait
      lockstep submit mpi --workers 2 --dry-run -- mpirun ./a.out
      lockstep submit -f job.yaml --what-if
      lockstep submit pytorch --workers 2 --gpus 8 --image pytorch/pytorch --code . \\
          -- python train.py
      lockstep submit plain --name score --after bert -- python score.py
      lockstep submit plain --name sweep --array 0-9 --runtime 1h --script train.sh -- --lr 0.1
    """
    found = _from_flags(flags, more) if file is None else _from_file(file)
    for document in found:
        check(document)
    if carry.code is not None and carry.no_code:
        raise typer.BadParameter("cannot be combined with --code", param_hint="--no-code")
    if sending.what_if:
        _ask(found, target, sending.output)
    elif sending.dry_run:
        _print(found, sending.output)
    else:
        _send(found, target, sending, carry, file=file is not None)


def _ask(found: list[Document], target: Target, output: Format) -> None:
    from lockstep.cli.connect import run
    from lockstep.cli.whatif import lines, what_if

    objects = [document.obj for document in found]
    answers = run(target, lambda session: what_if(session, objects))
    if output is Format.JSON:
        print(encode([answer.tree() for answer in answers], output), end="")
        return
    for answer in answers:
        print("\n".join(lines(answer)))


def _send(found: list[Document], target: Target, how: Sending, code: Carry, *, file: bool) -> None:
    # What follows needs a connection, which checking and a dry run do without.
    from lockstep.cli.carrying import carry
    from lockstep.cli.connect import Session, run
    from lockstep.cli.existing import Existing
    from lockstep.cli.sending import send

    existing = Existing.CHANGE if file else Existing.REFUSE
    if how.replace:
        existing = Existing.REPLACE
    objects = [document.obj for document in found]

    async def work(session: Session) -> None:
        carried = await carry(session, objects, code, "" if file else _here())
        waiting = {"wait": how.wait, "follow": how.follow}
        await send(session, objects, **waiting, existing=existing, code=carried)

    run(target, work)


def _from_file(file: Path) -> list[Document]:
    if given := given_of(Flags, More):
        raise typer.BadParameter(
            f"a file says everything of its jobs, and {', '.join(given)} would change nothing: "
            f"leave out {given[0]}, or write it into {file}",
            param_hint="--file",
        )
    return documents(file)


def _from_flags(flags: Flags, more: More) -> list[Document]:
    if not flags.framework:
        raise typer.BadParameter(
            f"name one of {', '.join(Framework)}, or give a file with -f", param_hint="FRAMEWORK"
        )
    try:
        flags = replace(flags, command=more.command(flags.command))
        return [Document(job, "the flags") for job in more.complete(training_job(flags, _here()))]
    except BadFlag as error:
        raise typer.BadParameter(str(error), param_hint=error.flag) from error


def _here() -> str:
    """Return the present directory; empty where it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _print(found: list[Document], output: Format) -> None:
    format_ = Format.JSON if output is Format.JSON else Format.YAML
    between = "" if format_ is Format.JSON else "---\n"
    print(between.join(encode(document.obj, format_) for document in found), end="")
