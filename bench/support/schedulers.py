"""Schedulers under test, each as the process that a user would start."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import kube_binaries

LAST = 8_000
"""Characters of a scheduler's log that are shown when what is measured fails."""


@contextlib.contextmanager
def lockstep(kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Lockstep's scheduler."""
    command = [sys.executable, "-P", "-m", "lockstep", "scheduler", "--kubeconfig", str(kubeconfig)]
    with _running(command, kubeconfig.parent / "lockstep-scheduler.log") as process:
        yield process


@contextlib.contextmanager
def kube_scheduler(kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """kube-scheduler, its own limits on requests lifted."""
    config = kubeconfig.parent / "kube-scheduler.json"
    limits = {"kubeconfig": str(kubeconfig), "qps": 10_000, "burst": 10_000}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": limits,
            }
        )
    )
    program = str(kube_binaries.need("kube-scheduler"))
    command = [program, f"--config={config}", "--secure-port=0"]
    with _running(command, kubeconfig.parent / "kube-scheduler.log") as process:
        yield process


def wait_ready(process: subprocess.Popen[bytes]) -> None:
    """Return once a part of Lockstep has said that it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(b"ready"), line


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output)
        try:
            yield process
        except Exception:
            # Its folder goes with the server, and what failed may not do so again.
            sys.stderr.write(log.read_text(errors="replace")[-LAST:])
            raise
        finally:
            process.kill()
            process.wait()
