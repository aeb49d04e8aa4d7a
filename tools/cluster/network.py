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
    _ip(control, f"link add {layout.RAIL} type bridge")
    _ip(control, f"link set {layout.RAIL} up")


def join(control: int, node: Node, process: int, others: Iterable[Node]) -> None:
    """Link a node with the others; *process* is its first one."""
    links = (
        ("eth0", port_of(node), layout.BRIDGE, node.address),
        (layout.RAIL, f"{layout.RAIL}-{node.number}", layout.RAIL, node.rail_address),
    )
    for name, port, bridge, address in links:
        _ip(control, f"link add {port} type veth peer name {name} netns {process}")
        _ip(control, f"link set {port} master {bridge} up")
        _ip(process, f"addr add {address}/24 dev {name}")
        _ip(process, f"link set {name} up")
    _ip(control, f"route replace {node.pods} via {node.address}")
    _ip(process, "link set lo up")
    _ip(process, f"route add default via {layout.CONTROL_ADDRESS}")
    for other in others:
        if other != node:
            _ip(process, f"route add {other.pods} via {other.address}")


def set_link(control: int, node: Node, up: bool) -> None:
    """Cut a node off from all others, or connect it again."""
    _ip(control, f"link set {port_of(node)} {'up' if up else 'down'}")


def limit_rail(process: int, rate: str) -> None:
    """Let a node send on its rail at *rate*, in tc's words; where it is empty, without a limit."""
    queue = f"tbf rate {rate} burst 64kb latency 50ms" if rate else "noqueue"
    command = ["tc", "qdisc", "replace", "dev", layout.RAIL, "root", *queue.split()]
    subprocess.run(enter(process, command), check=True)


def port_of(node: Node) -> str:
    """Return the name of a node's port at the bridge."""
    return f"port{node.number}"


def enter(process: int, command: Iterable[str]) -> list[str]:
    """Return the command line that runs a command in the network of a process."""
    return ["nsenter", f"--net=/proc/{process}/ns/net", *command]


def _ip(process: int, words: str) -> None:
    subprocess.run(enter(process, ["ip", *words.split()]), check=True)
