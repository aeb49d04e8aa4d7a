"""Keys for the pods of one job to log in to each other."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def keys() -> dict[str, str]:
    """Return a new Ed25519 pair as the files that ssh and sshd read.

    The same pair identifies the workers to the launcher (``known_hosts``): it exists for one job
    only, and whoever holds it is one of the job's pods.
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
