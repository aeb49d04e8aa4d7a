"""Two pods on one port, each on its own address."""

from __future__ import annotations

import sys

import pytest
from tests.support.process_node import ProcessNode, gone, phase, pod, read_log

from lockstep.api.core import PODS
from lockstep.kube.client import Client
from lockstep.nodes.process.cgroups import Groups
from lockstep.nodes.process.ports import Ports

SERVER = """
import socket, sys
family = socket.AF_INET6 if sys.argv[1] == "::" else socket.AF_INET
server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], 18080))
server.listen()
client = socket.create_connection(("127.0.0.1", 18080))
taken, _ = server.accept()
print(taken.getpeername()[0], server.getsockname()[0], client.getpeername()[0], flush=True)
free = socket.socket()
free.bind(("0.0.0.0", 0))
print(free.getsockname()[0], flush=True)
"""


def needs_own_ports() -> None:
    groups = Groups("tests-ports")
    ports = Ports("tests-ports", groups)
    try:
        if ports.root is None:
            pytest.skip(f"needs control groups of version 2: {ports.problem}")
        try:
            ports.enter("u", "c", "127.1.2.3", {18080})
        except OSError as error:
            pytest.skip(f"needs the right to load BPF programs: {error}")
        (ports.root / "u" / "c").rmdir()
        (ports.root / "u").rmdir()
    finally:
        ports.close()
        groups.close()


@pytest.mark.parametrize("listens", ["0.0.0.0", "::"])  # noqa: S104
async def test_two_pods_listen_on_one_port(node: ProcessNode, client: Client, listens: str) -> None:
    needs_own_ports()
    names = [f"port-{number}-{len(listens)}" for number in (0, 1)]
    for name in names:
        declared = {"ports": [{"containerPort": 18080}]}
        command = [sys.executable, "-c", SERVER + "\nimport time; time.sleep(60)", listens]
        await client.create(PODS, pod(name, command, container=declared), "default")
    for name in names:
        found = await phase(client, name, "Running")
        address = found.status.pod_ip
        said: list[str] = []
        for _ in range(600):
            said = read_log(node, name).split()
            if len(said) >= 4:
                break
            await phase(client, name, "Running")
        assert [one.removeprefix("::ffff:") for one in said[:3]] == [
            said[0].removeprefix("::ffff:"),
            address,
            address,
        ]
        assert said[3] == "0.0.0.0"  # noqa: S104 - a port that is not declared stays as it is
        await client.delete(PODS, name, "default", grace_seconds=0)
        await gone(client, name)
