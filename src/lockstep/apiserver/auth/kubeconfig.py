"""Writing kubeconfig files."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from lockstep.apiserver.auth.pki import KeyPair
from lockstep.keys.files import private_directory, write_private

_TEMPLATE = """\
apiVersion: v1
kind: Config
clusters:
- name: lockstep
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: lockstep
  context:
    cluster: lockstep
    user: {user}
    namespace: default
current-context: lockstep
"""


def write_kubeconfig(path: Path, *, server: str, ca: Path, user: str, pair: KeyPair) -> None:
    """Write a kubeconfig for one user, with everything that it needs inside, mode 0600.

    Raises:
        OSError: A certificate cannot be read or the file cannot be written.
    """
    text = _TEMPLATE.format(
        server=json.dumps(server),
        user=json.dumps(user),
        ca=_embedded(ca),
        certificate=_embedded(pair.certificate),
        key=_embedded(pair.key),
    )
    if not path.parent.exists():
        private_directory(path.parent)
    write_private(path, text.encode())


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
