"""Network namespaces as nodes: a management link to the test, and rails over bridges as leaves."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest


def needs_namespaces() -> None:
    """Skip the test where no network namespaces may be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"needs network namespaces: {done.stderr.decode().strip()}")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass
class Fabric:
    """Nodes ``n1`` to ``nN`` as namespaces; each has ``mgmt0`` and a NIC ``rail0``, ``rail1``...

    Rail r has the subnet 10.(60+r).0.0/16 and node number i the address 10.(60+r).0.i there. All
    rails hang on bridges in a namespace of their own.
    """

    nodes: int
    rails: int = 2
    rate: str = ""
    """What each NIC may send, as tc writes it."""
    # Several fabrics may be there at once, of this process and of others.
    number: int = field(default_factory=itertools.count().__next__)
    host: str = ""
    tag: str = ""
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host = self.host or f"10.59.{(os.getpid() + 83 * self.number) % 251}.254"
        self.tag = self.tag or f"lk{os.getpid() % 100000}{chr(ord('a') + self.number % 26)}"

    def start(self) -> Fabric:
        self._namespace("switch")
        ip("link", "add", f"{self.tag}m", "type", "bridge")
        ip("addr", "add", f"{self.host}/24", "dev", f"{self.tag}m")
        ip("link", "set", f"{self.tag}m", "up")
        for rail in range(self.rails):
            self._in("switch", "ip", "link", "add", f"br{rail}", "type", "bridge")
            self._in("switch", "ip", "link", "set", f"br{rail}", "up")
        for number in range(1, self.nodes + 1):
            self._node(number)
        return self

    def stop(self) -> None:
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", f"{self.tag}m"], capture_output=True, check=False)

    def space(self, node: str) -> str:
        """Return the name of a node's namespace."""
        return f"{self.tag}-{node}"

    def limit(self, node: str, nic: str, rate: str) -> None:
        """Let a NIC send no more than *rate*, as tc writes it."""
        shaped = ["tbf", "rate", rate, "burst", "64kb", "latency", "200ms"]
        self._in(node, "tc", "qdisc", "replace", "dev", nic, "root", *shaped)

    def inside(self, node: str, *command: str) -> list[str]:
        """Return the command that runs *command* on a node."""
        return ["ip", "netns", "exec", self.space(node), *command]

    def popen(self, node: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a command on a node; what it says goes into *log*."""
        with log.open("wb") as file:
            return subprocess.Popen(
                self.inside(node, *command), stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )

    def agent(self, node: str, kubeconfig: Path, log: Path) -> subprocess.Popen[bytes]:
        """Start the node agent of a node."""
        command = [sys.executable, "-m", "lockstep", "agent", "--node", node]
        command += ["--kubeconfig", str(kubeconfig), "--metrics-port", "0"]
        return self.popen(node, command, log)

    def _in(self, node: str, *command: str) -> None:
        subprocess.run(self.inside(node, *command), check=True, capture_output=True)

    def _namespace(self, node: str) -> None:
        ip("netns", "add", self.space(node))
        self.made.append(self.space(node))
        self._in(node, "ip", "link", "set", "lo", "up")

    def _node(self, number: int) -> None:
        name = f"n{number}"
        self._namespace(name)
        outer = f"{self.tag}v{number}"
        peer = ["peer", "name", "mgmt0", "netns", self.space(name)]
        ip("link", "add", outer, "type", "veth", *peer)
        ip("link", "set", outer, "master", f"{self.tag}m", "up")
        self._in(
            name, "ip", "addr", "add", f"{self.host.rpartition('.')[0]}.{number}/24", "dev", "mgmt0"
        )
        self._in(name, "ip", "link", "set", "mgmt0", "up")
        for rail in range(self.rails):
            far = f"s{number}-{rail}"
            peer = ["peer", "name", far, "netns", self.space("switch")]
            self._in(name, "ip", "link", "add", f"rail{rail}", "type", "veth", *peer)
            self._in("switch", "ip", "link", "set", far, "master", f"br{rail}", "up")
            address = f"10.{60 + rail}.0.{number}/16"
            self._in(name, "ip", "addr", "add", address, "dev", f"rail{rail}")
            self._in(name, "ip", "link", "set", f"rail{rail}", "up")
            if self.rate:
                self.limit(name, f"rail{rail}", self.rate)
                shaped = ["tbf", "rate", self.rate, "burst", "64kb", "latency", "200ms"]
                self._in("switch", "tc", "qdisc", "replace", "dev", far, "root", *shaped)
