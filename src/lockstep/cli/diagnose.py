"""``diagnose``: what logs say of a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lockstep.cli.failure import BadInput
from lockstep.cli.options import Output
from lockstep.cli.output import Format, encode, print_lines, structured

if TYPE_CHECKING:
    from lockstep.api.diagnosis import Diagnosis

app = typer.Typer(rich_markup_mode=None)

MOST_FILES: Final = 4096
LONGEST_FILE: Final = 64 << 20
LONGEST_ALL: Final = 512 << 20
"""Bytes that are read of all files; of a file that is longer, its beginning and its end."""


@app.command()
def diagnose(
    *,
    logs: Annotated[
        list[Path], typer.Option("--logs", help="A log, or a folder of logs; may be repeated.")
    ],
    more: Annotated[list[Path] | None, typer.Argument(help="Further logs.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what failed, where, whose fault it is, how sure that is, and what to do.

    Ranks are told by the name of a file (rank3.log) or by the lines ([rank3]:). Nothing is
    changed, and no cluster is asked.

    \b
    Examples:
      lockstep diagnose --logs train.log -o json
      lockstep diagnose --logs logs/ --logs dmesg.txt
    """
    from lockstep.api.wire import to_builtins
    from lockstep.health.core.diagnose import diagnose as judge
    from lockstep.health.core.reading import lines_of

    files = sorted({file for path in (*logs, *(more or ())) for file in _files(path)})
    if len(files) > MOST_FILES:
        raise BadInput(f"--logs: {len(files)} files; at most {MOST_FILES} are read")
    verdict = judge(line for name, data in _read(files) for line in lines_of(name, data))
    if structured(output):
        print(encode(_whole(to_builtins(verdict)), output), end="")
        return
    print_lines(list(_words(verdict)))


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


def _words(verdict: Diagnosis) -> Iterator[str]:
    from lockstep.cli.views.diagnosis import words

    yield from words(verdict)
