"""The limit: one asyncio process with 64 connections that binds and does nothing else.

``python -m bench.support.bare_loop KUBECONFIG NODES`` binds every pod without a node, to the nodes
in turn, and prints how many it bound a second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp

from lockstep.api.core import PODS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.tls import client_context

CONNECTIONS = 64


async def main(kubeconfig: Path, nodes: int) -> None:
    config = ClusterConfig.load(kubeconfig)
    async with Client(config) as client:
        names = [p.metadata.name for p in (await client.list(PODS)).items if not p.spec.node_name]
    tls = client_context(
        ca=config.ca, certificate=config.client_certificate, key=config.client_key, insecure=False
    )
    waiting = enumerate(names)

    async def worker(session: aiohttp.ClientSession) -> None:
        for number, name in waiting:
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % nodes}"},
            }
            url = f"{config.server}/api/v1/namespaces/default/pods/{name}/binding"
            headers = {"Content-Type": "application/json"}
            async with session.post(url, data=json.dumps(body), headers=headers) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()

    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls)
    async with aiohttp.ClientSession(connector=connector) as session:
        began = time.perf_counter()
        await asyncio.gather(*(worker(session) for _ in range(CONNECTIONS)))
        print(len(names) / (time.perf_counter() - began))


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(Path(sys.argv[1]), int(sys.argv[2])))
