"""A leader that is stopped like a laptop that sleeps writes nothing when it wakes up too late."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from tests.support import fenced_writer
from tests.support.apiserver import ApiServer
from tests.support.fenced_writer import NAME, TIMING
from tests.support.waiting import eventually, stretched

from lockstep.api.core import CONFIG_MAPS
from lockstep.runtime.manager import Manager


async def test_a_leader_that_was_stopped_too_long_writes_nothing(any_server: ApiServer) -> None:
    async with any_server.client() as client:
        await client.create(CONFIG_MAPS, {"metadata": {"name": NAME, "namespace": "default"}})
        first = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", fenced_writer.__name__, str(any_server.kubeconfig), "first"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert first.stdout is not None
        writes = asyncio.Event()

        async def lead() -> None:
            await fenced_writer.write(client, "second")
            writes.set()
            await asyncio.Event().wait()

        manager = Manager(client, name="writers", identity="second", timing=TIMING)
        manager.add_task(lead)

        async def written() -> int:
            found = await client.get(CONFIG_MAPS, NAME, "default")
            return int(found.data.get("first", 0))

        try:
            assert await first.stdout.readline() == b"leads\n"
            await eventually(written, what="the first writes")
            first.send_signal(signal.SIGSTOP)
            running = asyncio.create_task(manager.run(lambda _: None))
            await eventually(writes.is_set, what="the second leads")
            before = await written()
            first.send_signal(signal.SIGCONT)
            assert await asyncio.wait_for(first.stdout.readline(), stretched(20)) == b"refused\n"
            # A request that was past the fence when its sender was stopped may still arrive.
            assert await written() - before <= 1
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        finally:
            first.kill()
            await first.wait()
