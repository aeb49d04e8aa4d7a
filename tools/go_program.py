"""A program in Go that tests run, built from pinned modules into the user's cache.

Its directory there is named after the pins and the sources, so that a second build finds it and a
changed one is built anew. Go's own variables (``GOFLAGS`` and the like) hold.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GoProgram:
    """A package of the Go module in *folder*, built as *name*."""

    folder: Path
    package: str
    name: str
    tags: str = ""
    """Build tags, separated by commas."""

    @property
    def label(self) -> str:
        """How ``make`` and the cache call it."""
        return self.folder.name

    def path(self) -> Path:
        """Return where the program belongs, whether it is there or not."""
        digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
        digest.update(self.tags.encode())
        for file in ("go.mod", "go.sum", *sorted(p.name for p in self.folder.glob("*.go"))):
            digest.update((self.folder / file).read_bytes())
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "lockstep" / self.label / digest.hexdigest()[:12] / self.name

    def find(self) -> Path | None:
        """Return the program, if it was built."""
        built = self.path()
        return built if os.access(built, os.X_OK) else None

    def build(self) -> int:
        """Build the program where it is missing and return the exit status."""
        target = self.path()
        if target.exists():
            print(f"{self.label}: {self.name} is in {target.parent}")
            return 0
        if shutil.which("go") is None:
            print(f"{self.label}: Go is not on the PATH; it is needed", file=sys.stderr)
            return 1
        target.parent.mkdir(parents=True, exist_ok=True)
        print(f"{self.label}: {self.name} into {target.parent}; about 2 minutes", flush=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(draft)]
        command += ["-tags", self.tags] if self.tags else []
        command.append(self.package)
        try:
            environment = {**os.environ, "CGO_ENABLED": "0"}
            done = subprocess.run(command, cwd=self.folder, env=environment, check=False)
            if done.returncode == 0:
                draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return done.returncode
