"""``diagnose``: what logs, or the pods of a job, say of a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lockstep.cli.app import App, AtLeast
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Namespaced, Output
from lockstep.cli.output import Format, show
from lockstep.cli.target import Target

if TYPE_CHECKING:
    from lockstep.api.diagnosis import Diagnosis

app = App()

MOST_FILES: Final = 4096
LONGEST_FILE: Final = 64 << 20
_MOST_TOLD: Final = 5
LONGEST_ALL: Final = 512 << 20
"""Bytes that are read of all files; of a file that is longer, its beginning and its end."""


@app.command()
def diagnose(
    *,
    logs: Annotated[
        list[Path] | None, "--logs", "A log, or a folder of logs; may be repeated."
    ] = None,
    dumps: Annotated[
        Path | None,
        "--dumps",
        "Folder with dumps of torch's flight recorder, one a rank, whose names end with "
        "the number of the rank.",
    ] = None,
    world: Annotated[int, AtLeast(0), "Number of all ranks; as the dumps say by default."] = 0,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[JOB|LOG]...", help="A job, or further logs.")
    ] = None,
    output: Output = Format.TABLE,
    collect: Annotated[
        Path | None,
        "--collect",
        "DIR",
        "Ask the job's ranks now; write traces, stacks, logs and objects into DIR.",
    ] = None,
    target: Namespaced,
) -> None:
    """Say what failed, where, whose fault it is, how sure that is, and what to do.

    Ranks are told by the name of a file (rank3.log) or by the lines ([rank3]:). Nothing is
    changed. A cluster is asked about a JOB alone: for the verdict on it or, with --collect, for all
    that its ranks and nodes tell, which is kept and judged.

    \b
    Examples:
      lockstep diagnose --logs train.log -o json
      lockstep diagnose --logs logs/ --logs dmesg.txt
      lockstep diagnose --dumps /tmp/nccl_trace --logs logs/
      lockstep diagnose digits
      lockstep diagnose digits --collect found/
    """
    job = _job(logs, dumps, more, collect)
    if not job:
        _tell(_judged(logs, dumps, more, world), output)
    elif collect is None:
        _tell(_of_job(job, target), output)
    else:
        _tell(_collected(job, target, collect), output)


def _job(
    logs: list[Path] | None, dumps: Path | None, more: list[Path] | None, collect: Path | None
) -> str:
    """Return the job that is meant; empty where logs are."""
    offline = bool(logs or dumps)
    named = [str(one) for one in more or ()]
    if collect is not None and (offline or len(named) != 1):
        raise BadInput("--collect: name one job", "lockstep diagnose JOB --collect DIR")
    if collect is None and (offline or len(named) != 1 or Path(named[0]).exists()):
        return ""
    name = named[0].removeprefix("job/")
    if "/" in name or name.startswith("."):
        if collect is not None:
            raise BadInput(f"JOB: {name} is no name of a job")
        return ""
    return name


def _of_job(name: str, target: Target) -> Diagnosis:
    from lockstep.api.job_record import JobRecord
    from lockstep.cli.connect import Session, run
    from lockstep.cli.gone_jobs import job_or_record
    from lockstep.cli.naming import job_of

    async def ask(session: Session) -> Diagnosis:
        found = await job_or_record(session, await job_of(session, name))
        job = found.job if isinstance(found, JobRecord) else found
        if job.status.diagnosis is None:
            raise CommandFailed(
                f"job {name} ({job.status.phase or 'new'}): nothing is known to be wrong with it",
                f"`lockstep diagnose {name} --collect DIR` asks its ranks now",
            )
        return job.status.diagnosis

    return run(target, ask)


def _collected(name: str, target: Target, folder: Path) -> Diagnosis:
    from lockstep.api.training import TrainingJob
    from lockstep.cli.collecting import collect, judged
    from lockstep.cli.connect import Session, run
    from lockstep.cli.naming import job_of

    async def ask(session: Session) -> tuple[TrainingJob, list[str]]:
        return await collect(session, await job_of(session, name), folder)

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"--collect: {folder} is there already and not an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--collect: {folder}: {error.strerror}") from None
    job, missing = run(target, ask)
    for words in missing:
        typer.echo(f"missing: {words}", err=True)
    typer.echo(f"kept in {folder}", err=True)
    return judged(job, folder, _judged([folder / "logs"], None, None, 0))


def _judged(
    logs: list[Path] | None, dumps: Path | None, more: list[Path] | None, world: int
) -> Diagnosis:
    from lockstep.health.core.diagnose import diagnose as judge
    from lockstep.health.core.reading import lines_of

    if not (logs or more or dumps):
        raise BadInput("--logs or --dumps: say what to look at")
    paths = (*(logs or ()), *(more or ()))
    files = sorted({file for path in paths for file in _files(path)})
    if len(files) > MOST_FILES:
        raise BadInput(f"--logs: {len(files)} files; at most {MOST_FILES} are read")
    verdict = judge(line for name, data in _read(files) for line in lines_of(name, data))
    return verdict if dumps is None else _with_dumps(verdict, dumps, world)


def _tell(verdict: Diagnosis, output: Format) -> None:
    from lockstep.api.wire import to_builtins
    from lockstep.cli.views.explain import words

    show(_whole(to_builtins(verdict)), words(verdict), output)


def _with_dumps(verdict: Diagnosis, folder: Path, world: int) -> Diagnosis:
    """Return the surer of what the logs say and of what the dumps say."""
    from lockstep.health.core.hang import verdict as of_hang
    from lockstep.health.dumps import read

    if not folder.is_dir():
        raise BadInput(f"--dumps: {folder} is no folder")
    found = read(sorted(one for one in folder.iterdir() if one.is_file()))
    for path, why in list(found.refused.items())[:_MOST_TOLD]:
        typer.echo(f"{path} is left out: {why}", err=True)
    if not found.seen:
        raise BadInput(f"--dumps: {folder} holds no dump of a flight recorder")
    hang = of_hang(found.known(), world)
    return verdict if verdict.confidence > hang.confidence else hang


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (one for one in path.rglob("*") if one.is_file())
    elif path.is_file():
        yield path
    else:
        raise BadInput(f"--logs: {path} is no file and no folder")


def _read(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    left = LONGEST_ALL
    for path in files:
        most = min(LONGEST_FILE, left)
        try:
            with path.open("rb") as file:
                size = path.stat().st_size
                data = file.read(most if size <= most else most // 2)
                if size > most:
                    file.seek(size - most // 2)
                    data += b"\n" + file.read(most // 2)
        except OSError as error:
            raise BadInput(f"--logs: {path}: {error.strerror}") from None
        left -= len(data)
        yield str(path), data


def _whole(told: dict[str, object]) -> dict[str, object]:
    """Return the verdict with every field, also those that say nothing."""
    empty = {"class": "unknown", "cause": "", "action": "observe"}
    place: dict[str, list[object]] = {"nodes": [], "ranks": [], "devices": []}
    said = told.get("place", {})
    whole = {**empty, "confidence": 0.0, "evidence": [], **told}
    ordered = ("class", "cause", "action", "place", "confidence", "evidence")
    whole["place"] = {**place, **(said if isinstance(said, dict) else {})}
    return {name: whole[name] for name in ordered}
