"""The real kubectl, against the embedded API server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml


def find_kubectl() -> str | None:
    """Return kubectl from KUBEBUILDER_ASSETS, else from PATH."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / "kubectl").exists():
        return str(Path(assets) / "kubectl")
    return shutil.which("kubectl")


def require_kubectl() -> str:
    """Return kubectl, or skip the test where there is none."""
    found = find_kubectl()
    if found is None:
        pytest.skip("needs kubectl on PATH or in KUBEBUILDER_ASSETS")
    return found


@dataclass
class Kubectl:
    """kubectl as the administrator of a server."""

    program: str
    kubeconfig: Path
    home: Path

    def __call__(self, *args: str, stdin: Any = None, fails: bool = False) -> str:
        """Run it and return what it printed; *stdin*, unless text, is given as YAML.

        With *fails* it must end with an error, which is returned.
        """
        done = self.run(*args, stdin=stdin)
        failed = done.returncode != 0
        assert failed == fails, f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout

    def run(self, *args: str, stdin: Any = None) -> subprocess.CompletedProcess[str]:
        """Run it and return how it ended."""
        return subprocess.run(
            [self.program, *args],
            input=stdin if isinstance(stdin, str | None) else yaml.safe_dump(stdin),
            env=self._env(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        """Run it in the background, its output in a pipe, and end it."""
        process = subprocess.Popen(
            [self.program, *args], env=self._env(), stdout=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(20)

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
        }
