"""What a program saves by itself: from which step its files are, and none is lost to an older one.

Loaded by its file in the rank's own Python, beside ``telemetry``. Each file that ``torch.save``
writes is marked with its step. A program that starts anew at an earlier step, and writes to the
same path, would destroy the newer file: that one is renamed first, and the rank says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MARK = "user.lockstep.step"


class OwnSaves:
    """The marks of the files that one rank saves and loads."""

    def __init__(self, job: str, step: Callable[[], int], notes: Path) -> None:
        """Mark files of *job* with what *step* says; *notes* is a file for those without marks."""
        self._job, self._step, self._notes = job, step, notes
        self.loaded = 0
        """The step of the newest file of the job that was loaded."""

    def watch(self, torch: Any) -> None:
        """Take part in ``torch.save``, ``torch.load``, ``os.replace`` and ``os.rename``."""
        save, load = torch.save, torch.load

        def saved(obj: Any, f: Any, *args: Any, **options: Any) -> Any:
            if isinstance(f, (str, os.PathLike)):
                self.spare(os.fspath(f))
            result = save(obj, f, *args, **options)
            if (path := _path(f)) is not None:
                self.mark(path, self._step())
            return result

        def loading(f: Any, *args: Any, **options: Any) -> Any:
            if (path := _path(f)) is not None:
                self.loaded = max(self.loaded, self.of(path) or 0)
            return load(f, *args, **options)

        torch.save, torch.load = saved, loading
        os.replace, os.rename = self._renaming(os.replace), self._renaming(os.rename)

    def _renaming(self, rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(src: Any, dst: Any, **options: Any) -> None:
            step = None if options else self.of(src)
            if step is not None:
                self.spare(os.fspath(dst), step)
            rename(src, dst, **options)
            if step is not None:
                self.mark(os.fspath(dst), step)

        return renamed

    def spare(self, path: str, step: int | None = None) -> None:
        """Rename the file at *path* where it is of a later step than *step*, or than now."""
        known, now = self.of(path), self._step() if step is None else step
        if known is None or known <= now or not Path(path).is_file():
            return
        aside = f"{path}.step-{known}"
        try:
            os.link(path, aside)
            Path(path).unlink()
        except OSError as error:
            if not isinstance(error, FileExistsError):
                sys.stderr.write(
                    f"lockstep: {path} holds step {known}, and this program overwrites it with "
                    f"step {now}: it could not be kept ({error})\n"
                )
            return
        self.mark(aside, known)
        sys.stderr.write(
            f"lockstep: {path} holds step {known}, and this program, which began anew, is at step "
            f"{now}: the newer file is kept as {aside}; load it to go on from there\n"
        )

    def of(self, path: Any) -> int | None:
        """Return the step that the file at *path* holds; None where this job did not save it."""
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            job, _, step = os.getxattr(path, _MARK).decode().rpartition(":")
            return int(step) if job == self._job else None
        with contextlib.suppress(OSError, ValueError, TypeError):
            found = json.loads(self._notes.read_text()).get(str(Path(path).absolute()))
            return int(found) if found is not None else None
        return None

    def mark(self, path: str, step: int) -> None:
        """Note that the file at *path* holds *step*."""
        try:
            os.setxattr(path, _MARK, f"{self._job}:{step}".encode())
        except (OSError, AttributeError):
            # A file system without marks: known for as long as the pod is there.
            known = {}
            with contextlib.suppress(OSError, ValueError):
                known = json.loads(self._notes.read_text())
            known[str(Path(path).absolute())] = step
            with contextlib.suppress(OSError):
                self._notes.write_text(json.dumps(known))


def _path(file: Any) -> str | None:
    if isinstance(file, (str, os.PathLike)):
        return os.fspath(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) and Path(name).is_file() else None
