"""``lockstep-run --collect``: what the ranks of this pod say now, raw, as a tar on standard output.

It runs beside the launcher, as ``lockstep diagnose JOB --collect DIR`` starts it in each pod, and
finds the launcher's directory by the note that it leaves there.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lockstep.train.evidence import collect
from lockstep.train.meters import Meters
from lockstep.train.place import DIRECTORY, Place
from lockstep.train.state import Json

NOTE = "place.json"


def note(directory: Path, place: Place, generation: int, variables: Mapping[str, str]) -> None:
    """Note in the launcher's *directory* whose it is and which ranks it has started."""
    told = {
        "pod": place.uid,
        "generation": generation,
        "first": int(variables["LOCKSTEP_FIRST_RANK"]),
        "count": int(variables["PET_NPROC_PER_NODE"]),
    }
    (directory / NOTE).write_text(json.dumps(told))


def found(pod: str, bases: tuple[Path, ...]) -> tuple[Path, Json] | None:
    """Return the directory of the launcher of the pod with the uid *pod*, and what is noted."""
    for base in bases:
        for path in base.glob(f"{DIRECTORY}*/{NOTE}"):
            try:
                told = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            if told.get("pod") == pod:
                return path.parent, told
    return None


def main() -> int:
    """Write the tar; return the exit code."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    bases = (*((Path(named),) if named else ()), Path(tempfile.gettempdir()))
    there = found(os.environ.get("LOCKSTEP_POD_UID", ""), bases)
    if there is None:
        print("lockstep-run: no launcher of this pod has started ranks", file=sys.stderr)
        return 1
    directory, told = there
    meters = Meters(directory)
    meters.follow(told["generation"])
    pids = {local: one.pid for local, one in meters.read(told["count"]).items()}
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for name, data in collect(meters.ask, told["first"], pids):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return 0
