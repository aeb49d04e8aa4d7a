"""Starts the control plane's processes in order, keeps them running, and ends them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from lockstep.api.node_pool import NodePool
from lockstep.cli.failure import CommandFailed
from lockstep.cli.up.child import Child, Part
from lockstep.cli.up.logfile import last_lines
from lockstep.cli.up.parts import Plane, api_server, others
from lockstep.keys.files import write_private
from lockstep.kube.locate import marked

READY_WITHIN = 60.0


class Supervisor:
    """The processes of one control plane."""

    def __init__(self, settings: Plane, *, lock: int, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._lock = lock
        self._say = say
        self._children: list[Child] = []

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Run until cancelled, then end every process.

        Raises:
            CommandFailed: when a part cannot be started.
        """
        try:
            await self._up()
            on_ready()
            await asyncio.Event().wait()
        finally:
            await asyncio.shield(self._down())

    def kill(self) -> None:
        """End every process at once, without waiting for an orderly end."""
        for child in self._children:
            child.kill()

    async def _up(self) -> None:
        settings = self._settings
        self._say("starting the API server")
        server = self._add(api_server(settings))
        await _ready(server)
        if settings.kubeconfig is not None:
            settings.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
            kubeconfig = marked(settings.admin_kubeconfig.read_bytes(), settings.directory)
            write_private(settings.kubeconfig, kubeconfig)
        self._say("applying the kinds and defaults")
        from lockstep.cli.up.bootstrap import bootstrap

        await bootstrap(
            settings.admin_kubeconfig,
            simulated=_simulated(settings.simulate),
            pools=_pools(settings.pool or ()),
        )
        waiting = [self._add(part) for part in others(settings)]
        self._say("starting " + ", ".join(child.part.name for child in waiting))
        await asyncio.gather(*(_ready(child) for child in waiting))

    def _add(self, part: Part) -> Child:
        child = Child(part, self._settings.log_dir, lock=self._lock, say=self._say)
        self._children.append(child)
        return child

    async def _down(self) -> None:
        if not self._children:
            return
        self._say("stopping")
        server, *rest = self._children
        # The others still write what became of them, so the API server is the last to go.
        await asyncio.gather(*(child.stop() for child in rest))
        await server.stop()


def _simulated(spec: str | None) -> Collection[str]:
    """Return the names of the nodes that *spec* describes."""
    if spec is None:
        return ()
    from lockstep.nodes.simulated.fleet import fleet
    from lockstep.nodes.simulated.spec import parse

    return fleet(parse(spec)).keys()


def _pools(specs: Collection[str]) -> list[NodePool]:
    """Return the simulated pools that *specs* describe."""
    if not specs:
        return []
    from lockstep.nodes.simulated.pools import parse_pool

    return [parse_pool(spec) for spec in specs]


async def _ready(child: Child) -> None:
    ready = asyncio.create_task(child.ready.wait())
    await asyncio.wait(
        [ready, child.task], timeout=READY_WITHIN, return_when=asyncio.FIRST_COMPLETED
    )
    if child.task.done():
        ready.cancel()
        child.task.result()
    if not ready.done():
        ready.cancel()
        tail = "".join(f"\n  {line}" for line in last_lines(child.log_path, 5))
        raise CommandFailed(
            f"{child.part.name} is not ready after {READY_WITHIN:.0f} s{tail}",
            f"its log is {child.log_path}",
        )
