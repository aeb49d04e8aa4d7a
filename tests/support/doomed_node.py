"""A process node that goes wrong at a given call, and is killed there for real; and its starter.

As a program it takes a kubeconfig, a directory, and the plan: nothing, or a call's number and a
fault as ``Kill.AFTER``. It prints a line of JSON whenever it has asked something of the server, and
one when it is about to be killed. Its machine has two GPUs, whatever there is in truth.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.support.faults import Break, Faults, Kill, Only, Plan, nothing

from lockstep.devices.core.model import Card, Inventory
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.transport import Request
from lockstep.nodes.process import main as node

NAME = "here"
GPUS = 2
ROOT = Path(__file__).parents[2]


class DoomedNode:
    """One life of a process node: a real process, and what it says of its calls."""

    def __init__(self, kubeconfig: Path, data: Path, config: ClusterConfig, plan: Plan) -> None:
        self.killed, self.ready = asyncio.Event(), asyncio.Event()
        self.requests: list[Request] = []
        self.made_late: list[Request] = []
        """A node creates no pods."""
        self.busy = False
        command = [sys.executable, "-m", __name__, str(kubeconfig), str(data), *_written(plan)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, start_new_session=True, cwd=ROOT
        )
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """Take what the node says until it ends."""
        assert self.process.stdout is not None
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe = self.process.stdout
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
            await asyncio.to_thread(self.process.wait)
        finally:
            transport.close()
        if not self.killed.is_set():
            raise AssertionError(f"the node ended with {self.process.returncode}")

    def _take(self, said: dict[str, object]) -> None:
        if "method" in said:
            self.requests.append(Request(str(said["method"]), str(said["target"]), {}))
        self.busy = bool(said.get("busy", self.busy))
        if "ready" in said:
            self.ready.set()
        if "killed" in said:
            self.killed.set()

    async def kill(self) -> None:
        """End it as a power cut would, as far as the process goes; its containers go on."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
        self.busy = False


def _written(plan: Plan) -> list[str]:
    if isinstance(plan, Only):
        return [str(plan.number), str(plan.fault)]
    assert plan is nothing, "this plan cannot be told to a process"
    return []


def _read(words: list[str]) -> Plan:
    if not words:
        return nothing
    kind, _, name = words[1].partition(".")
    return Only(int(words[0]), {"Kill": Kill, "Break": Break}[kind][name])


def _say(**said: object) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


async def main(kubeconfig: str, data: str, *plan: str) -> None:
    """Be the node until it is killed."""

    def die() -> None:
        _say(killed=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def tell() -> None:
        new = faults.requests[len(told) :]
        for request in new:
            told.append(request)
            _say(method=request.method, target=request.target, busy=True)
        if not new:
            _say(busy=faults.busy)

    told: list[Request] = []
    faults = Faults(_read(list(plan)), on_kill=die, on_change=tell)
    # The node itself is to notice nothing of it, and has no way to be given another transport.
    node.Client = partial(Client, transport=faults.transport)  # type: ignore[misc, assignment]
    cards = [Card(index=i, uuid=f"GPU-{i}", memory=80 * 1024) for i in range(GPUS)]
    node.finding.find = lambda cpus: Inventory(cards=cards)  # type: ignore[assignment]
    with contextlib.suppress(asyncio.CancelledError):
        await node.run(
            kubeconfig=Path(kubeconfig),
            data=Path(data),
            name=NAME,
            ready=lambda _: _say(ready=True),
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
