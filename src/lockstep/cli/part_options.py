"""Options that several parts share: ports, leader election, and how a part runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.cli.target import Only

if TYPE_CHECKING:
    from lockstep.runtime.endpoints import Ports

Port = Annotated[int, range(65536), "0 chooses a free one."]
Leashed = Annotated[
    bool, typer.Option("--leashed", help="End when standard input is closed.", hidden=True)
]
Host = Annotated[str, "Address to listen on."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where health and metrics are answered."""

    metrics_port: Annotated[int | None, "Serve metrics and health on this port of loopback."] = None
    probe_port: Annotated[
        int | None, "Answer /healthz and /readyz on this port of every address, without more."
    ] = None
    secure_metrics_port: Annotated[
        int | None,
        "Serve metrics over TLS on this port of every address, to clients that the API server "
        "lets get the URL /metrics.",
    ] = None
    metrics_certificate: Annotated[
        Path | None, "Directory with tls.crt and tls.key for them; an own one by default."
    ] = None

    def ports(self) -> Ports:
        """Return them as a process takes them."""
        from lockstep.runtime.endpoints import Ports

        return Ports(
            self.metrics_port,
            self.probe_port,
            self.secure_metrics_port,
            self.metrics_certificate,
        )


Beyond = Annotated[Endpoints, Only("probe_port", "secure_metrics_port", "metrics_certificate")]
Probes = Annotated[Endpoints, Only("probe_port")]
LeaseNamespace = Annotated[str, "Namespace of the lease of leader election."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """How instances of a part agree which of them leads."""

    identity: Annotated[str | None, "Name in leader election; host and process by default."] = None
    leader_elect: Annotated[
        bool, "Stand by until no other instance leads; off for a single one."
    ] = True
    lease_namespace: LeaseNamespace = SYSTEM_NAMESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How a part runs in the foreground."""

    leashed: Leashed = False
    verbose: Annotated[bool, "--verbose", "-v", "Log more."] = False
