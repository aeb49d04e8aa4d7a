"""Links and routes between the machines of a cluster, each in its own network namespace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from tools.cluster import layout
from tools.cluster.layout import Node


def make_bridge(control: int) -> None:
    """Make the network that the nodes join; *control* is the control plane's first process."""
    _ip(control, "link set lo up")
    _ip(control, f"link add {layout.BRIDGE} type bridge")
    _ip(control, f"addr add {layout.CONTROL_ADDRESS}/24 dev {layout.BRIDGE}")
    _ip(control, f"link set {layout.BRIDGE} up")


def join(control: int, node: Node, process: int, others: Iterable[Node]) -> None:
    """Link a node with the others; *process* is its first one."""
    port = port_of(node)
    _ip(control, f"link add {port} type veth peer name eth0 netns {process}")
    _ip(control, f"link set {port} master {layout.BRIDGE} up")
    _ip(control, f"route replace {node.pods} via {node.address}")
    _ip(process, "link set lo up")
    _ip(process, f"addr add {node.address}/24 dev eth0")
    _ip(process, "link set eth0 up")
    _ip(process, f"route add default via {layout.CONTROL_ADDRESS}")
    for other in others:
        if other != node:
            _ip(process, f"route add {other.pods} via {other.address}")


def set_link(control: int, node: Node, up: bool) -> None:
    """Cut a node off from all others, or connect it again."""
    _ip(control, f"link set {port_of(node)} {'up' if up else 'down'}")


def port_of(node: Node) -> str:
    """Return the name of a node's port at the bridge."""
    return f"port{node.number}"


def enter(process: int, command: Iterable[str]) -> list[str]:
    """Return the command line that runs a command in the network of a process."""
    return ["nsenter", f"--net=/proc/{process}/ns/net", *command]


def _ip(process: int, words: str) -> None:
    subprocess.run(enter(process, ["ip", *words.split()]), check=True)
