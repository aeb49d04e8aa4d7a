"""A cluster's life: up, found or replaced, a node stopped and started, down without a trace."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.cluster import addons, cgroups, control, images, layout, network, node, programs
from tools.cluster.images import Image
from tools.cluster.layout import CONTROL, Node, Record
from tools.cluster.machine import GO, Machine, first_process, spawn

READY_SECONDS: Final = 120.0
_TOOLS: Final = ("unshare", "nsenter", "ip", "tc", "nft", "runc", "mount", *images.NEEDED)


class ClusterError(Exception):
    """The cluster cannot be as asked; the text says why and what to do."""


class MachineLacks(ClusterError):
    """This machine cannot run a cluster at all, for want of rights or programs."""


@dataclass
class Cluster:
    """A cluster that runs."""

    record: Record

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.record.kubeconfig

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl as the administrator and return its output."""
        done = subprocess.run(
            [str(programs.kubernetes("kubectl")), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def process(self, machine: str) -> int:
        """Return the first process of a machine.

        Raises:
            ClusterError: The machine does not run.
        """
        pid, start = self.record.processes.get(machine, (0, 0))
        if not start or layout.started(pid) != start:
            raise ClusterError(f"{machine} of cluster {self.record.name} does not run")
        return pid

    def runs(self, machine: str) -> bool:
        """Return whether a machine runs."""
        with suppress(ClusterError):
            return bool(self.process(machine))
        return False

    def inside(self, machine: str, *command: str) -> list[str]:
        """Return the command line that runs a command on a machine, in all its namespaces."""
        pid = str(self.process(machine))
        return ["nsenter", "-t", pid, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", *command]

    def node(self, name: str) -> Node:
        """Return the node of this name."""
        found = [one for one in self.record.all_nodes if one.name == name]
        if not found:
            raise ClusterError(f"no node {name}: there are {_names(self.record.all_nodes)}")
        return found[0]

    def stop_node(self, name: str) -> None:
        """End a node as a power cut does: kubelet, containerd and all pods at once."""
        pid = self.process(self.node(name).name)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: layout.started(pid) == 0, 30, f"{name} is gone")

    def start_node(self, name: str) -> None:
        """Start a node again, with the disk that it had."""
        one = self.node(name)
        if self.runs(name):
            return
        process = _start(self.record, node.machine(self.record, one))
        network.join(self.process(CONTROL), one, process.first, self.record.all_nodes)
        process.go()

    def cut_off(self, name: str, cut: bool = True) -> None:
        """Take a node's link away, or give it back."""
        network.set_link(self.process(CONTROL), self.node(name), up=not cut)

    def limit_rail(self, name: str, rate: str = "") -> None:
        """Slow the second link of a node down, to a rate as ``200mbit``, or let it be."""
        network.limit_rail(self.process(self.node(name).name), rate)

    def freeze_node(self, name: str, frozen: bool = True) -> None:
        """Stop a node as a hypervisor does that pauses it, or let it go on."""
        cgroups.freeze(self.record.name, self.node(name).name, frozen)

    def push(self, image: Image) -> None:
        """Send an image to the cluster's registry."""
        images.push(image, self.record.registry_port)

    def healthy(self) -> bool:
        """Return whether every machine runs and every node is Ready."""
        machines = [CONTROL, *(one.name for one in self.record.all_nodes)]
        return all(self.runs(name) for name in machines) and self.ready()

    def ready(self) -> bool:
        """Return whether every node is Ready."""
        try:
            found = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        except ClusterError:
            return False
        return sum(map(_is_ready, found)) == len(self.record.all_nodes) == len(found)


def up(name: str, nodes: int = 3, gpus: int = 0) -> tuple[Cluster, bool]:
    """Return a cluster of that name, and whether it was there: another one is replaced.

    Raises:
        ClusterError: This machine cannot run one, or it does not become ready.
    """
    require()
    with _alone(name):
        found = Record.load(name)
        if found and (found.nodes, found.gpus) == (nodes, gpus) and Cluster(found).healthy():
            return Cluster(found), True
        _end(name)
        return _make(Record(name, nodes, gpus)), False


def down(name: str) -> bool:
    """End a cluster, whatever state it is in; return whether there was something to end."""
    require()
    with _alone(name):
        return _end(name)


def require() -> None:
    """Refuse a machine that cannot run a cluster, and say what it lacks."""
    if os.geteuid() != 0:
        raise MachineLacks(
            "A cluster needs root: it makes network, mount and PID namespaces. "
            "Run: sudo -E make cluster"
        )
    if absent := [name for name in _TOOLS if shutil.which(name) is None]:
        raise MachineLacks(
            f"A cluster needs {', '.join(absent)}, which are not on the PATH. Run: .ci/packages"
        )


def _make(record: Record) -> Cluster:
    if missing := programs.missing():
        raise MachineLacks(
            f"A cluster needs {', '.join(missing)}, which are not built. "
            "Run: make cluster-programs (about 10 minutes, once)"
        )
    if record.gpus:
        subprocess.run(["make", "--silent", "-C", str(layout.ROOT / "native")], check=True)
    record.save()
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    record.api_port, record.registry_port = (one.getsockname()[1] for one in sockets)
    ports = (layout.API_PORT, layout.REGISTRY_PORT)
    forwards = {one.fileno(): port for one, port in zip(sockets, ports, strict=True)}
    control.admin(record)
    first = _start(record, control.machine(record, forwards))
    for one in sockets:
        one.close()
    network.make_bridge(first.first)
    first.go()
    cluster = Cluster(record)
    small = images.small()
    wait_for(lambda: _listens(record.registry_port), READY_SECONDS, "the registry listens")
    for image in small.values():
        cluster.push(image)
    record.pause = small["pause"].reference
    for one in record.all_nodes:
        cluster.start_node(one.name)
    text = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": addons.dns(small["coredns"].reference)}
    )
    ready = ["get", "--raw", "/readyz"]
    wait_for(lambda: cluster.kubectl(*ready, check=False) == "ok", READY_SECONDS, "the API server")
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    wait_for(cluster.ready, READY_SECONDS, f"{record.nodes} nodes are Ready")
    wait_for(lambda: _serves_names(cluster), READY_SECONDS, "CoreDNS is Ready")
    return cluster


@dataclass
class _Started:
    first: int
    wire: int
    """Where a line lets the machine go on."""

    def go(self) -> None:
        """Let the machine's programs start, as its network is there."""
        os.write(self.wire, GO)
        os.close(self.wire)


def _start(record: Record, machine: Machine) -> _Started:
    unshare, wire = spawn(machine, record.log(machine.name))
    first = first_process(unshare)
    cgroups.set_aside(record.name, unshare)
    record.processes[machine.name] = (first, layout.started(first))
    record.save()
    return _Started(first, wire)


def _end(name: str) -> bool:
    directory = layout.DATA / name
    there = directory.exists()
    cgroups.sweep(name)
    # Nodes hold some hundred thousand files of images.
    subprocess.run(["rm", "-rf", "--one-file-system", str(directory)], check=True)
    return there


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keep others from changing a cluster of this name meanwhile."""
    lock = Path(f"/run/lock/lockstep-cluster-{name}")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a condition holds.

    Raises:
        ClusterError: It does not within that time.
    """
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise ClusterError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    """Return whether the registry behind a loopback port answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
        one.sendall(b"GET /v2/ HTTP/1.0\r\n\r\n")
        return one.recv(12).endswith(b"200")
    return False


def _serves_names(cluster: Cluster) -> bool:
    found = cluster.kubectl("get", "deployment", "coredns", "-n", addons.NAMESPACE, "-o", "json")
    return bool(json.loads(found).get("status", {}).get("readyReplicas"))


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _names(nodes: list[Node]) -> str:
    return ", ".join(one.name for one in nodes)
