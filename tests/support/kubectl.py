"""The real kubectl, against the embedded API server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import kube_binaries
from tests.support.waiting import stretched

EDITOR = "sed -i s/before/after/"
"""What ``kubectl edit`` opens: it changes one word."""
KUBECTLS = ("built", "installed")
"""The kubectl of the Kubernetes that is built here, and the one that the machine came with."""


def need_kubectl(which: str = "built") -> str:
    """Return one of `KUBECTLS`, or skip the test where there is none."""
    if which == "built":
        return str(kube_binaries.need("kubectl"))
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("this machine has no kubectl of its own")
    return found


@dataclass
class Kubectl:
    """kubectl as the administrator of a server."""

    program: str
    kubeconfig: Path
    home: Path
    more: dict[str, str] = field(default_factory=dict)
    """More environment variables."""

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
            timeout=stretched(60),
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
            "KUBE_EDITOR": EDITOR,
            "KUBECTL_APPLYSET": "true",
            **self.more,
        }
