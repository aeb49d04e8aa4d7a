"""The cluster's own certificates: one authority, and what it has issued.

Everything is made once and found again by later starts. An index beside the files says until when
each certificate holds, so that a start that has nothing to issue need not load a cryptography
library; it is written last, so that a pair half-written by a crash is made anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lockstep.keys.files import private_directory, write_private

if TYPE_CHECKING:
    from lockstep.keys.authority import Authority

_DAY: Final = 86400.0
CA_LIFETIME: Final = 3650 * _DAY
LEAF_LIFETIME: Final = 365 * _DAY
RENEW_BEFORE: Final = 30 * _DAY
_AGENT_HOSTS: Final = ("127.0.0.1", "::1")
"""Agents listen on loopback alone."""
_INDEX: Final = "index.json"


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Pki:
    """The authority of one data directory and the pairs that it has issued, as files."""

    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        private_directory(directory)
        self._authority: Authority | None = None
        self._index: dict[str, dict[str, Any]] = self._read_index()
        if not (directory / "ca.crt").exists():
            self._create_authority()

    @property
    def ca(self) -> Path:
        """The authority's certificate, which clients trust."""
        return self._directory / "ca.crt"

    def serving(self, hosts: Sequence[str]) -> KeyPair:
        """Return the API server's own pair, valid for these host names and addresses.

        A pair issued earlier is kept when it covers them all.
        """
        known = set(self._index.get("apiserver", {}).get("hosts", ()))
        names = sorted(known | set(hosts))
        return self._pair(
            "apiserver",
            {"hosts": names},
            lambda authority, end: authority.serving("lockstep-apiserver", names, end),
        )

    def client(self, name: str, *, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """Return the pair of that file name, which authenticates as the user in these groups."""
        member_of = sorted(groups)
        return self._pair(
            name,
            {"user": user, "groups": member_of},
            lambda authority, end: authority.client(user, member_of, end),
        )

    def kubelet_client(self) -> KeyPair:
        """Return the pair with which the API server calls the nodes; here it may do nothing."""
        return self.client("kubelet-client", user="kube-apiserver-kubelet-client")

    def node_agent(self) -> KeyPair:
        """Return the pair with which the agents of this machine's nodes serve the API server."""
        return self._pair(
            "node-agent",
            {"hosts": list(_AGENT_HOSTS)},
            lambda authority, end: authority.serving("lockstep-node-agent", _AGENT_HOSTS, end),
        )

    def node(self, name: str, address: str) -> KeyPair:
        """Return the pair with which the agent of one node of another machine serves."""
        return self._pair(
            f"node-{name}",
            {"hosts": [address]},
            lambda authority, end: authority.serving("lockstep-node-agent", [address], end),
        )

    def signing_key(self) -> Path:
        """Return the EC key that signs service-account tokens."""
        path = self._directory / "service-account.key"
        if not path.exists():
            from lockstep.keys.authority import new_key

            write_private(path, new_key())
        return path

    def _pair(
        self,
        name: str,
        claims: dict[str, Any],
        issue: Callable[[Authority, float], tuple[bytes, bytes]],
    ) -> KeyPair:
        pair = KeyPair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        entry = self._index.get(name)
        now = self._clock()
        current = (
            entry is not None
            and entry["until"] - now > RENEW_BEFORE
            and {**claims, "until": entry["until"]} == entry
            and pair.certificate.exists()
            and pair.key.exists()
        )
        if not current:
            until = now + LEAF_LIFETIME
            certificate, key = issue(self._load_authority(), until)
            write_private(pair.key, key)
            write_private(pair.certificate, certificate)
            self._index[name] = {**claims, "until": until}
            self._write_index()
        return pair

    def _create_authority(self) -> None:
        from lockstep.keys.authority import Authority

        now = self._clock()
        self._authority = Authority.create("lockstep-ca", now, now + CA_LIFETIME)
        self._index = {}
        (self._directory / _INDEX).unlink(missing_ok=True)
        write_private(self._directory / "ca.key", self._authority.key_pem())
        write_private(self.ca, self._authority.certificate_pem())

    def _load_authority(self) -> Authority:
        if self._authority is None:
            from lockstep.keys.authority import Authority

            key = (self._directory / "ca.key").read_bytes()
            self._authority = Authority.load(self.ca.read_bytes(), key)
        return self._authority

    def _read_index(self) -> dict[str, dict[str, Any]]:
        try:
            index: dict[str, dict[str, Any]] = json.loads((self._directory / _INDEX).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return index

    def _write_index(self) -> None:
        write_private(self._directory / _INDEX, json.dumps(self._index, indent=1).encode())
