"""What a cache shows to those who connect from elsewhere: a certificate that it makes itself.

No authority vouches for it. Its digest is in the status of each of the node's DatasetCaches, which
the API server lets caches alone write, and goes from there to the other nodes and into views.
"""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from typing import Self

from lockstep.keys.authority import self_signed
from lockstep.kube.tls import load_pair


@dataclass(frozen=True, slots=True)
class Shown:
    """The context of TLS, and the SHA-256 of its certificate."""

    context: ssl.SSLContext
    digest: str

    @classmethod
    def create(cls, node: str) -> Self:
        """Make the certificate of a cache that starts on *node*."""
        certificate, key = self_signed(f"{node}.data.lockstep.dev")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        load_pair(context, certificate, key)
        binary = ssl.PEM_cert_to_DER_cert(certificate.decode())
        return cls(context, hashlib.sha256(binary).hexdigest())
