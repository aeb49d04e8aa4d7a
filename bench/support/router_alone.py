"""A router whose route and replica are put in by hand: ``... UPSTREAM_PORT``; prints its port."""

from __future__ import annotations

import asyncio
import sys

import uvloop

from lockstep.api.core import Pod, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.serving import Backend, Route, RouteSpec
from lockstep.kube.cache import Change
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table


async def main(upstream: int) -> None:
    table, clients = Table("", lambda lane, urgent: None), set[ClientSide]()
    spec = RouteSpec(backends=[Backend(revision="r", port=upstream)])
    table.on_route(
        Change(None, Route(metadata=ObjectMeta(name="iris", namespace="n", uid="u"), spec=spec))
    )
    labels = {ROUTE_LABEL: "iris", REVISION_LABEL: "r"}
    ready = Condition(type="Ready", status="True")
    status = PodStatus(phase="Running", pod_ip="127.0.0.1", conditions=[ready])
    meta = ObjectMeta(name="iris-0", namespace="n", uid="p", labels=labels)
    table.on_pod(Change(None, Pod(metadata=meta, status=status)))
    loop, sorting = asyncio.get_running_loop(), Sorting(table.lanes)
    server = await loop.create_server(
        lambda: ClientSide(table.find, table.unknown, clients, sorting),
        "127.0.0.1",
        0,
        backlog=4096,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
