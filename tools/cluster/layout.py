"""Where a cluster's files are, what its addresses are, and the record of what runs.

A cluster has its own network namespace with a bridge, to which each node's namespace has a link.
The addresses may therefore be the same for all clusters: the host knows none of them.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = Path("/var/lib/lockstep-cluster")
CONTROL: Final = "control"
BRIDGE: Final = "nodes0"
LINKS: Final = "10.88.0"
"""The network between nodes; the control plane has address 1, the first node 11."""
CONTROL_ADDRESS: Final = f"{LINKS}.1"
RAIL: Final = "rail0"
"""The second link of each node, for the traffic of jobs."""
RAILS: Final = "10.89.0"
POD_NETWORK: Final = "10.244.0.0/16"
SERVICE_NETWORK: Final = "10.96.0.0/16"
API_ADDRESS: Final = "10.96.0.1"
DNS_ADDRESS: Final = "10.96.0.10"
DOMAIN: Final = "cluster.local"
API_PORT: Final = 6443
REGISTRY_PORT: Final = 5000
SHARED: Final = "/srv/shared"
"""A directory that all nodes have in common, as by a network file system."""
REGISTRY: Final = f"registry.test:{REGISTRY_PORT}"
"""How the images of the cluster's registry are called inside."""


def cache() -> Path:
    """Return where the user's cache of Lockstep's tools is."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


@dataclass(frozen=True)
class Node:
    """One node: its name, its number from 1 on, and how many stub GPUs it shows."""

    name: str
    number: int
    gpus: int = 0

    @property
    def address(self) -> str:
        """Return its address in the network between nodes."""
        return f"{LINKS}.{10 + self.number}"

    @property
    def rail_address(self) -> str:
        """Return its address on the rail."""
        return f"{RAILS}.{10 + self.number}"

    @property
    def pods(self) -> str:
        """Return the network of its pods."""
        return f"10.244.{self.number}.0/24"


@dataclass
class Record:
    """A cluster as its state file tells it; processes are known by number and start."""

    name: str
    nodes: int = 3
    gpus: int = 0
    processes: dict[str, tuple[int, int]] = field(default_factory=dict)
    api_port: int = 0
    registry_port: int = 0
    pause: str = ""
    """The image that holds the namespaces of each pod."""

    @property
    def directory(self) -> Path:
        """Return where all files of the cluster are."""
        return DATA / self.name

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig, for use outside of the cluster."""
        return self.directory / "kubeconfig"

    @property
    def audit(self) -> Path:
        """Return the API server's audit log."""
        return self.machine(CONTROL) / "var/log/audit.jsonl"

    @property
    def all_nodes(self) -> list[Node]:
        """Return the nodes, whether they run or not."""
        return [Node(f"node-{n}", n, self.gpus) for n in range(1, self.nodes + 1)]

    @property
    def shared(self) -> Path:
        """Return the directory that all nodes have in common."""
        return self.directory / "shared"

    def machine(self, name: str) -> Path:
        """Return the directory of the files of the control plane or of one node."""
        return self.directory / name

    def log(self, name: str) -> Path:
        """Return the log of a machine's first process."""
        return self.directory / f"{name}.log"

    def save(self) -> None:
        """Write the state file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        draft = self.directory / ".state.json"
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(self.directory / "state.json")

    @staticmethod
    def load(name: str) -> Record | None:
        """Return the record of a cluster, if there is one that can be read."""
        try:
            found = json.loads((DATA / name / "state.json").read_text())
        except (OSError, ValueError):
            return None
        processes = {key: (pid, start) for key, (pid, start) in found.pop("processes").items()}
        return Record(**found, processes=processes)


def started(pid: int) -> int:
    """Return when a process started, in ticks since boot; 0 where there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return 0
