"""A gang gives up: it says so before its pods fail, so that whoever comes then knows why."""

from __future__ import annotations

import asyncio

from tests.support import parts
from tests.support.apiserver import ApiServer
from tests.support.faults import Answer, Fault, Faults
from tests.support.scheduler import add_gang
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.transport import Request

TIMES = 3
"""How often the server does not take the news that the gang has failed."""


class Refusals:
    """Refuses the news that a gang has failed a few times; remembers who was said to have."""

    def __init__(self) -> None:
        self.left = TIMES
        self.told: list[str] = []

    def __call__(self, number: int, request: Request) -> Fault | None:
        if request.method != "PATCH" or b'"Failed"' not in (request.body or b""):
            return None
        kind = request.target.split("/")[-3]
        if kind == "gangs" and self.left:
            self.left -= 1
            return Answer(500, "InternalError")
        self.told.append(kind)
        return None


async def test_the_gang_reports_failure_before_its_pods_do(any_server: ApiServer) -> None:
    refusals = Refusals()
    faults = Faults(refusals)
    config = ClusterConfig.load(any_server.kubeconfig)
    async with any_server.client() as client, Client(config, transport=faults.transport) as broken:
        await ensure_crds(client)
        await add_gang(client, "brief", 2, maxWait="1s")
        running = asyncio.create_task(parts.scheduler(broken, lambda name: None))
        try:
            await eventually(lambda: failed(client), what="the pods have failed")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        status = (await client.get(GANGS, "brief", "default")).status
    assert not refusals.left
    assert refusals.told[0] == "gangs"
    assert (status.phase, status.reason, status.placed_at) == ("Failed", "MaxWaitExceeded", None)


async def failed(client: Client) -> bool:
    pods = (await client.list(PODS, "default")).items
    return len(pods) > 0 and all(pod.status.phase == "Failed" for pod in pods)
