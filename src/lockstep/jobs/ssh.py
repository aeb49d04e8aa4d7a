"""Keys for the pods of one job to log in to each other."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.jobs.frameworks.base import SSH_SUFFIX
from lockstep.jobs.frameworks.mpi_files import SSH_MOUNT, ssh_config

_VOLUME: Final = "lockstep-ssh"
_USUAL_PORT: Final = 22


def files() -> dict[str, str]:
    """Return what lies beside the keys of a job whose framework has no use for them."""
    return {"config": ssh_config(_USUAL_PORT, pinned=False)}


def mount(job: TrainingJob, spec: Json) -> None:
    """Mount the keys in all containers of a pod of *job*."""
    secret = {"secretName": job.metadata.name + SSH_SUFFIX, "defaultMode": 0o600}
    spec["volumes"] = [*spec.get("volumes", []), {"name": _VOLUME, "secret": secret}]
    for container in spec["containers"]:
        there = {"name": _VOLUME, "mountPath": SSH_MOUNT}
        container["volumeMounts"] = [*container.get("volumeMounts", []), there]


def keys() -> dict[str, str]:
    """Return a new Ed25519 pair as the files that ssh and sshd read.

    The same pair identifies the workers to the launcher (``known_hosts``): it exists for one job
    only, and its holders are the job's pods.
    """
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    ).decode()
    public = (
        private.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )
    return {
        "id_ed25519": pem,
        "id_ed25519.pub": f"{public}\n",
        "authorized_keys": f"{public}\n",
        "known_hosts": f"* {public}\n",
    }
