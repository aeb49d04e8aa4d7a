"""Places that the simulator and the running scheduler give, compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import stretched

from lockstep.api.core import PODS
from lockstep.api.names import GPUS_ANNOTATION
from lockstep.kube.client import Client

AGREED = 0.99


Places = dict[str, tuple[str, str]]


def lockstep(server, *arguments: str) -> str:
    """Run a command against the server."""
    command = [sys.executable, "-m", "lockstep", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=stretched(120), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def simulated(server, directory: Path) -> Places:
    """Return where the simulator has the pods at once, given a snapshot of the server.

    Whoever has to make room at once is not there any more.
    """
    file = str(directory / "snapshot.json")
    lockstep(server, "snapshot", file, "--kubeconfig", str(server.kubeconfig))
    run = json.loads(lockstep(server, "simulate", "--cluster", file, "--jobs", file, "-o", "json"))
    return {
        stay["pod"]: (stay["node"], ",".join(map(str, stay["gpus"])))
        for stay in run["placements"]
        if stay["start"] == 0 and stay["end"] != 0
    }


async def real(client: Client) -> Places:
    """Return where the pods of the server are."""
    return {
        pod.metadata.name: (
            pod.spec.node_name,
            pod.metadata.annotations.get(GPUS_ANNOTATION, ""),
        )
        for pod in (await client.list(PODS, "default")).items
        if pod.spec.node_name
    }


def agreement(ours: Places, theirs: Places) -> float:
    """Return the share of placements that are the same, of all that either made."""
    return len(ours.items() & theirs.items()) / len({*ours, *theirs})
