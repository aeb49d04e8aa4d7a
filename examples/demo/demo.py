"""The demo: a real training job and many gangs on the embedded control plane.

It starts 64 simulated 8-GPU nodes and this machine as a node, submits a PyTorch job and more gangs
than fit, kills one rank of the job, sees it come back at its step, makes a tour of what else there
is (data, models, faults, pools, teams, other systems' jobs, pipelines, cost), and proves from the
cluster's state that all is as it should be. It ends with 0, or with 1 and what went wrong.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

import proofs
from control_plane import ControlPlane
from gangs import GANGS, objects
from narration import Failed, eventually, say
from tour import Tour
from training import ACCURACY, Training, manifest

from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS as GANG_RESOURCE
from lockstep.api.gang import Gang
from lockstep.api.training import TRAINING_JOBS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ApiError

NAMESPACE = "default"
NODE_COUNT, GPUS_EACH = 64, 8
SIMULATE = f"{NODE_COUNT}x{GPUS_EACH},nodes-per-leaf=8,leaves-per-spine=4"
LONGEST = 175.0
"""Seconds after which it is given up; two cores that do nothing else need 40."""


class Demo:
    """The steps, in order; ``step`` names the present one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.plane = ControlPlane(directory)
        self.step = ""
        self.proven: list[str] = []
        self.tails: list[str] = []

    async def run(self) -> None:
        """Take every step; the control plane ends with the last, or with the first that fails."""
        try:
            self._begin("start the control plane")
            await self.plane.start(SIMULATE)
            async with Client(ClusterConfig.load(self.plane.kubeconfig)) as client:
                try:
                    await self._with(client)
                except BaseException as error:
                    say(f"failed: {error}")
                    self.tails = await self._log_tails(client)
                    raise
        finally:
            say("stopping the control plane")
            await self.plane.stop()
        self.proven.append("nothing is left running")

    async def _with(self, client: Client) -> None:
        training = Training(client)
        self._begin("find the nodes")
        await self._nodes(client)
        self._begin("submit the training job and the gangs")
        await client.create(TRAINING_JOBS, manifest(), NAMESPACE)
        await self._submit_gangs(client)
        self._begin("place the gangs")
        await self._settled(client)
        self._begin("train for a while")
        step = await training.trained_for_a_while()
        say(f"the job is at step {step}")
        self._begin("kill one rank and see the job come back")
        resumed = await training.back(await training.kill(1))
        if resumed < step:
            raise Failed(f"the job went on from step {resumed} and had done {step}")
        say(f"the job is back, from step {resumed}")
        self._begin("train to the end")
        job, accuracy = await training.finished()
        if accuracy < ACCURACY:
            raise Failed(f"test accuracy {accuracy:.1%} is below {ACCURACY:.0%}")
        self.proven += [
            f"rank 1 was killed at step {step}; the status counts {job.status.restarts} restart",
            f"its ranks started again in their pods at step {resumed}, from memory",
            f"the job succeeded with a test accuracy of {accuracy:.1%}",
        ]
        self._begin("prove the state of the cluster")
        await self._prove(client)
        await self._show()
        self._begin("make a tour: data, models, faults, pools, teams, dialects, pipelines, cost")
        self.proven += await Tour(self.plane, client, self.directory).run()

    def _begin(self, step: str) -> None:
        self.step = step
        say(f"== {step}")

    async def _nodes(self, client: Client) -> None:
        async def look() -> int | None:
            nodes = (await client.list(NODES)).items
            ready = [
                n
                for n in nodes
                if any(c.type == "Ready" and c.status == "True" for c in n.status.conditions)
            ]
            return len(ready) if len(ready) == NODE_COUNT + 1 else None

        count = await eventually(look, f"{NODE_COUNT + 1} nodes are ready", within=30)
        say(f"{count} nodes: {NODE_COUNT} simulated, and this machine")

    async def _submit_gangs(self, client: Client) -> None:
        for gang in GANGS:
            body, pods = objects(gang)
            await client.create(GANG_RESOURCE, body, NAMESPACE)
            await asyncio.gather(*(client.create(PODS, pod, NAMESPACE) for pod in pods))
        asked = sum(gang.total for gang in GANGS)
        have = NODE_COUNT * GPUS_EACH
        say(f"{len(GANGS)} gangs ask for {asked} GPUs; there are {have}")

    async def _settled(self, client: Client) -> None:
        async def look() -> list[Gang] | None:
            gangs = (await client.list(GANG_RESOURCE, NAMESPACE)).items
            mine = [g for g in gangs if g.metadata.name in {gang.name for gang in GANGS}]
            done = [
                g
                for g in mine
                if g.status.phase in ("Placed", "Running")
                or (g.status.phase == "Pending" and g.status.message)
            ]
            return mine if len(done) == len(GANGS) else None

        gangs = await eventually(look, "each gang is placed or says why not", within=30)
        waiting = sum(g.status.phase == "Pending" for g in gangs)
        say(f"{len(gangs) - waiting} gangs are placed, {waiting} wait")

    async def _prove(self, client: Client) -> None:
        pods = (await client.list(PODS, NAMESPACE)).items
        nodes = {node.metadata.name: node for node in (await client.list(NODES)).items}
        listing = (await client.list(GANG_RESOURCE, NAMESPACE)).items
        gangs = {gang.metadata.name: gang for gang in listing}
        placed, waiting = proofs.whole(GANGS, pods)
        inside = proofs.inside_one_domain(GANGS, pods, nodes)
        given = proofs.no_gpu_twice(pods, nodes)
        proofs.says_why(gangs, waiting)
        proofs.could_not_fit(GANGS, waiting, NODE_COUNT * GPUS_EACH - given)
        self.proven += [
            f"{len(placed)} gangs have every member bound, {len(waiting)} have none: none is split",
            f"{given} GPUs are given out, none of them twice",
            f"{inside} placed gangs lie inside one domain of the tier that they require",
            f"{len(waiting)} gangs wait, and each says why",
        ]

    async def _show(self) -> None:
        print(await self.plane.command("list"))
        print(await self.plane.command("list", "gangs"))

    async def _log_tails(self, client: Client) -> list[str]:
        training = Training(client)
        lines: list[str] = []
        for rank in (0, 1):
            lines += [f"--- log of rank {rank}", *(await training.log(rank)).splitlines()[-8:]]
        try:
            status = (await training.job()).status
            lines.append(f"--- job: {status.phase} {status.message}")
        except ApiError as error:
            lines.append(f"--- job: {error}")
        return lines


def main() -> int:
    """Run the demo; return its exit code."""
    # One thread a rank: two ranks, the control plane and the machine's owner share the cores.
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as directory:
        demo = Demo(Path(directory))
        try:
            asyncio.run(asyncio.wait_for(demo.run(), LONGEST))
        except (Failed, ApiError, TimeoutError, OSError) as error:
            why = str(error) or f"not done within {LONGEST:.0f} s"
            print("\n".join([*demo.plane.log_tails(), *demo.tails]), file=sys.stderr)
            print(f"FAILED at: {demo.step}: {why}", file=sys.stderr, flush=True)
            return 1
        except KeyboardInterrupt:
            print(f"interrupted at: {demo.step}", file=sys.stderr, flush=True)
            return 130
    print("Proven, from the cluster's state:")
    for line in demo.proven:
        print(f"  - {line}")
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
