"""A leader that writes without a pause; a program, so that it can be stopped for real.

Arguments: kubeconfig and identity. Prints ``leads`` once it writes, and ``refused`` when the fence
has held a write back.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.election import Timing
from lockstep.kube.errors import NotLeading
from lockstep.runtime.manager import Manager

NAME = "written-by-the-leader"
TIMING = Timing(lease=2.0, fence=1.2, retry=0.2)


async def write(client: Client, identity: str, count: int = 1) -> None:
    """Write how often *identity* has written."""
    await client.patch(CONFIG_MAPS, NAME, {"data": {identity: str(count)}}, "default")


async def main(kubeconfig: str, identity: str) -> None:
    """Write as fast as it goes while leading."""
    async with Client(ClusterConfig.load(Path(kubeconfig))) as client:

        async def lead() -> None:
            print("leads", flush=True)
            for count in itertools.count(1):
                try:
                    await write(client, identity, count)
                except NotLeading:
                    print("refused", flush=True)
                    await asyncio.Event().wait()

        manager = Manager(client, name="writers", identity=identity, timing=TIMING)
        manager.add_task(lead)
        await manager.run(lambda _: None)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
