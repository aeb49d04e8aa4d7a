"""The parts of Lockstep as processes: each runs in the foreground until SIGINT or SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Kubeconfig, Leashed

app = typer.Typer(rich_markup_mode=None)

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")]
MetricsPort = Annotated[
    int | None, typer.Option(help="Serve metrics and health on this port of loopback.")
]
ProbePort = Annotated[
    int | None,
    typer.Option(help="Answer /healthz and /readyz on this port of every address, without more."),
]
SecureMetricsPort = Annotated[
    int | None,
    typer.Option(
        help="Serve metrics over TLS on this port of every address, to whom the API server lets "
        "get the URL /metrics."
    ),
]
MetricsCertificate = Annotated[
    Path | None,
    typer.Option(help="Directory with tls.crt and tls.key for them; an own one by default."),
]
LeaseNamespace = Annotated[str, typer.Option(help="Namespace of the lease of leader election.")]
Identity = Annotated[
    str | None, typer.Option(help="Name in leader election; host and process by default.")
]
LeaderElect = Annotated[
    bool, typer.Option(help="Stand by until no other instance leads; off for a single one.")
]


@app.command()
def apiserver(
    *,
    data: Annotated[Path, typer.Option(help="Directory of the database, keys and kubeconfigs.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 7443,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Where to write it; DATA/kubeconfig by default.")
    ] = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the embedded API server.

    Example: lockstep apiserver --data ./cluster --port 7443
    """
    from lockstep.apiserver.main import run

    serve(
        run(data=data, port=port, host=host, kubeconfig=kubeconfig, ready=announce),
        leashed=leashed,
        verbose=verbose,
    )


@app.command()
def scheduler(
    *,
    kubeconfig: Kubeconfig = None,
    identity: Identity = None,
    leader_elect: LeaderElect = True,
    lease_namespace: LeaseNamespace = SYSTEM_NAMESPACE,
    metrics_port: MetricsPort = None,
    probe_port: ProbePort = None,
    secure_metrics_port: SecureMetricsPort = None,
    metrics_certificate: MetricsCertificate = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the gang scheduler.

    Example: lockstep scheduler --kubeconfig ~/.kube/config
    """
    from lockstep.kube.endpoints import Ports
    from lockstep.scheduler.main import run

    serve(
        run(
            kubeconfig=kubeconfig,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=Ports(metrics_port, probe_port, secure_metrics_port, metrics_certificate),
            ready=announce,
        ),
        leashed=leashed,
        verbose=verbose,
    )


@app.command()
def controllers(
    *,
    kubeconfig: Kubeconfig = None,
    identity: Identity = None,
    leader_elect: LeaderElect = True,
    lease_namespace: LeaseNamespace = SYSTEM_NAMESPACE,
    metrics_port: MetricsPort = None,
    probe_port: ProbePort = None,
    secure_metrics_port: SecureMetricsPort = None,
    metrics_certificate: MetricsCertificate = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the job controllers.

    Example: lockstep controllers --kubeconfig ~/.kube/config
    """
    from lockstep.jobs.main import run
    from lockstep.kube.endpoints import Ports

    serve(
        run(
            kubeconfig=kubeconfig,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=Ports(metrics_port, probe_port, secure_metrics_port, metrics_certificate),
            ready=announce,
        ),
        leashed=leashed,
        verbose=verbose,
    )


@app.command("process-node")
def process_node(
    *,
    data: Annotated[Path, typer.Option(help="Directory of the pods' files and logs.")],
    kubeconfig: Kubeconfig = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the node; the host's name by default.")
    ] = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Make this machine a node that runs pods as processes.

    Example: lockstep process-node --data ./node --kubeconfig ./cluster/kubeconfig
    """
    from lockstep.nodes.process.main import run

    serve(
        run(kubeconfig=kubeconfig, data=data, name=name, ready=announce),
        leashed=leashed,
        verbose=verbose,
    )


@app.command("simulate-nodes")
def simulate_nodes(
    spec: Annotated[
        str,
        typer.Argument(
            help="NODESxGPUS with options, or a file: 64x8,nodes-per-leaf=8,leaves-per-spine=4"
        ),
    ],
    *,
    kubeconfig: Kubeconfig = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Simulate nodes with GPUs, and the pods on them.

    Example: lockstep simulate-nodes 64x8,nodes-per-leaf=8,leaves-per-spine=4
    """
    from lockstep.nodes.simulated.main import run

    serve(
        run(kubeconfig=kubeconfig, spec=spec, seed=seed, ready=announce),
        leashed=leashed,
        verbose=verbose,
    )
