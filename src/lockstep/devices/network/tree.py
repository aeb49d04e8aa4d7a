"""A machine as the network's checks see it: its files and what its tools say, live or recorded.

A recorded tree is a directory with ``sys`` and ``proc`` as the kernel shows them, and ``tools``
with one file for each question to a tool, named by ``TOOLS``. A live machine answers the same
questions itself. What cannot be read is empty, and ``missing`` names it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lockstep.devices import sysfs

PATIENCE: Final = 5.0
"""Seconds that a tool may take."""
LONGEST: Final = 4 << 20
"""Characters of a tool's answer that are read."""

TOOLS: Final[Mapping[str, Sequence[str]]] = {
    "ip-addr": ("ip", "-j", "-d", "addr", "show"),
    "ip-rule": ("ip", "-j", "rule", "show"),
    "ip-route": ("ip", "-j", "route", "show", "table", "all"),
    "ip-neigh": ("ip", "-j", "neigh", "show"),
    "rdma-system": ("rdma", "-j", "system", "show"),
    "rdma-link": ("rdma", "-j", "link", "show"),
    "lldp": ("lldpcli", "-f", "json", "show", "neighbors", "details"),
    "lspci": ("lspci", "-vvv"),
    "gpu-topology": ("nvidia-smi", "topo", "-m"),
}
"""Questions about the machine: the name of the file in a recorded tree, and the command."""
TOOLS_BY_NETDEV: Final[Mapping[str, Sequence[str]]] = {
    "ethtool": ("ethtool", "{}"),
    "ethtool-driver": ("ethtool", "-i", "{}"),
    "ethtool-counters": ("ethtool", "-S", "{}"),
    "qos": ("mlnx_qos", "-i", "{}"),
}
"""Questions about one netdev: the file is called ``NAME-NETDEV``."""


class Tree:
    """The machine itself, or one recorded below *root*."""

    def __init__(self, root: Path = sysfs.ROOT, name: str = "") -> None:
        self.root, self.live = root, root == sysfs.ROOT
        self.name = name or (root.name if not self.live else os.uname().nodename)
        self.missing: dict[str, str] = {}
        """What could not be read, and why."""
        self._said: dict[str, str] = {}

    def path(self, path: str) -> Path:
        """Return where a file or folder of the machine is."""
        return self.root / path

    def text(self, path: str) -> str:
        """Return a small file's text; empty where it cannot be read."""
        return sysfs.read(self.root / path)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, in their natural order."""
        try:
            return sorted((one.name for one in (self.root / path).iterdir()), key=sysfs.natural)
        except OSError:
            return []

    def tool(self, question: str, netdev: str = "") -> str:
        """Return what a tool says; empty where it cannot, and then ``missing`` says why."""
        name = f"{question}-{netdev}" if netdev else question
        if name not in self._said:
            self._said[name] = self._ask(name, question, netdev)
        return self._said[name]

    def json(self, question: str) -> list[Any]:
        """Return a tool's JSON list; empty where it says none, and then ``missing`` says why."""
        text = self.tool(question)
        if not text:
            return []
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.missing[question] = f"no JSON ({error})"
            return []
        if isinstance(found, list):
            return found
        return [found] if isinstance(found, dict) else []

    def _ask(self, name: str, question: str, netdev: str) -> str:
        if not self.live:
            file = self.root / "tools" / name
            try:
                with file.open(errors="replace") as opened:
                    return opened.read(LONGEST)
            except OSError:
                self.missing[name] = f"the tree has no file tools/{name}"
                return ""
        command = TOOLS_BY_NETDEV[question] if netdev else TOOLS[question]
        return self._run(name, [part.format(netdev) for part in command])

    def _run(self, name: str, command: list[str]) -> str:
        program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            self.missing[name] = f"{command[0]} is not installed"
            return ""
        try:
            done = subprocess.run(  # noqa: S603 - a fixed command, no shell
                [program, *command[1:]], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.missing[name] = f"{command[0]}: {error}"
            return ""
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[:200]
            self.missing[name] = f"{command[0]} ended with {done.returncode}: {said}"
            return ""
        return done.stdout.decode(errors="replace")[:LONGEST]


def trees(root: Path) -> list[Tree]:
    """Return the recorded trees at *root*: itself, or one for each node below it.

    Raises:
        ValueError: when there is none, naming the folder and what it should hold.
    """
    if (root / "sys").is_dir():
        return [Tree(root)]
    below = sorted(root.iterdir()) if root.is_dir() else []
    found = [Tree(one) for one in below if (one / "sys").is_dir()]
    if not found:
        raise ValueError(
            f"{root}: no recorded tree; it should hold sys and tools, or a folder with them for "
            "each node; `lockstep network check --record DIR` makes one"
        )
    return found
