"""Where a launcher stands: its pod, its job, and how it reaches the API server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/lockstep.dev")
DIRECTORY = "lockstep-run-"
"""How the names of launchers' directories begin."""


class NoPlace(Exception):
    """The environment does not say where the launcher stands; the message says what is missing."""


@dataclass(frozen=True)
class Place:
    """What the pod's environment says."""

    namespace: str
    pod: str
    uid: str
    address: str
    world: str
    """Name of the ConfigMap with the world."""
    node_rank: int
    processes: int
    server: str
    account: Path = ACCOUNT
    alone: bool = False
    """Whether its only process is no rank, unless it is started by torchrun."""

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Place:
        """Return the place that *env* describes.

        Raises:
            NoPlace: when a variable is missing or is no number.
        """
        try:
            host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
            return cls(
                namespace=env["LOCKSTEP_NAMESPACE"],
                pod=env["LOCKSTEP_POD"],
                uid=env["LOCKSTEP_POD_UID"],
                address=env.get("LOCKSTEP_POD_IP", ""),
                world=env["LOCKSTEP_WORLD"],
                node_rank=int(env["PET_NODE_RANK"]),
                processes=int(env["PET_NPROC_PER_NODE"]),
                server=f"{host}:{port}" if ":" not in host else f"[{host}]:{port}",
                alone="LOCKSTEP_ALONE" in env,
            )
        except KeyError as error:
            raise NoPlace(f"the variable {error.args[0]} is not set") from None
        except ValueError as error:
            raise NoPlace(f"PET_NODE_RANK or PET_NPROC_PER_NODE: {error}") from None


def key(place: Place) -> bytes:
    """Return the key of the job, by which launchers know each other; empty where it has none."""
    file = place.account / "key"
    return file.read_bytes().strip() if file.is_file() else b""


def runtime_directory() -> Path:
    """Return a new directory of this user alone, for sockets."""
    import tempfile

    base = os.environ.get("XDG_RUNTIME_DIR")
    usable = base if base and os.access(base, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix=DIRECTORY, dir=usable))
