"""The parts of a control plane as processes: each runs in the foreground until it is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.cli.failure import BadInput
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Kubeconfig, Leashed, Verbose

app = typer.Typer(rich_markup_mode=None)

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
    audit_log: Annotated[
        Path | None,
        typer.Option(help="File in which changes by users are written (audit.k8s.io/v1, JSON)."),
    ] = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the embedded API server.

    Example: lockstep apiserver --data ./cluster --port 7443
    """
    from lockstep.apiserver.main import run

    serve(
        run(
            data=data,
            port=port,
            host=host,
            kubeconfig=kubeconfig,
            audit_log=audit_log,
            ready=announce,
        ),
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
    serve_names: Annotated[
        list[str] | None,
        typer.Option(
            "--serve",
            metavar="NAME",
            help="Place pods of this schedulerName too, in place of the scheduler of that name, "
            "which must not run; may be repeated.",
        ),
    ] = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the gang scheduler.

    \b
    Examples:
      lockstep scheduler --kubeconfig ~/.kube/config
      lockstep scheduler --serve volcano --serve kai-scheduler
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
            names=tuple(serve_names or ()),
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
    install_dialects: Annotated[
        str,
        typer.Option(
            help="Create the CRDs of these dialects where they are missing: all, or names "
            "separated by commas."
        ),
    ] = "",
    closed_days: Annotated[
        Path | None,
        typer.Option(help="With --records: folder into which days that are over go as Parquet."),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(help="Record in this SQLite file who used which GPU; not at all without it."),
    ] = None,
    gateway: Annotated[
        str, typer.Option(help="URL at which servers of notebooks reach `lockstep gateway`.")
    ] = "",
    environments: Annotated[
        str, typer.Option(help="Directory of each node in which packages are built.")
    ] = "",
    pool_commands: Annotated[
        Path | None,
        typer.Option(
            help="Directory of programs that NodePools may name as their provider; none without it."
        ),
    ] = None,
    node_lifecycle: Annotated[
        bool,
        typer.Option(
            help="Taint nodes that fall silent and evict their pods, and serve Deployments, "
            "StatefulSets, DaemonSets and CronJobs, where there is no kube-controller-manager that "
            "does."
        ),
    ] = False,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Run the controllers of every capability.

    Example: lockstep controllers --kubeconfig ~/.kube/config
    """
    from lockstep.compat import dialects
    from lockstep.controllers.main import run
    from lockstep.kube.endpoints import Ports

    try:
        wanted = dialects.parse(install_dialects)
    except ValueError as error:
        raise BadInput(f"--install-dialects: {error}") from None

    serve(
        run(
            kubeconfig=kubeconfig,
            identity=identity,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
            ports=Ports(metrics_port, probe_port, secure_metrics_port, metrics_certificate),
            install_dialects=wanted,
            records=records,
            closed_days=closed_days,
            gateway=gateway,
            environments=environments,
            pool_commands=pool_commands,
            node_lifecycle=node_lifecycle,
            ready=announce,
        ),
        leashed=leashed,
        verbose=verbose,
    )


@app.command()
def router(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 7480,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback with TLS and tokens.")
    ] = "127.0.0.1",
    domain: Annotated[str, typer.Option(help="Reach services also as NAME-NAMESPACE.DOMAIN.")] = "",
    name: Annotated[
        str, typer.Option(help="Name of its Router object; the host's by default.")
    ] = "",
    certificate: Annotated[Path | None, typer.Option(help="Certificate for TLS, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(help="File of bearer tokens, TOKEN [NAMESPACE,...] a line."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Carry requests to the replicas of inference services, and hold those that must wait.

    Example: lockstep router --port 7480

    Example: lockstep router --host 0.0.0.0 --certificate tls.crt --key tls.key --tokens tokens
    """
    from lockstep.serve.router.door import BadTokens
    from lockstep.serve.router.main import Guard, NotSafe, run

    guard = Guard(certificate, key, tokens)
    carried = run(
        kubeconfig=kubeconfig,
        host=host,
        port=port,
        domain=domain,
        name=name,
        guard=guard,
        ready=announce,
    )
    try:
        serve(carried, leashed=leashed, verbose=verbose)
    except (NotSafe, BadTokens) as error:
        raise BadInput(str(error)) from None


@app.command()
def gateway(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 7485,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    insecure: Annotated[
        bool,
        typer.Option(help="Listen beyond loopback without TLS, behind what speaks it."),
    ] = False,
    kubeconfig: Kubeconfig = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Serve kernels in pods of their own to Jupyter, and notebooks to browsers.

    Example: lockstep gateway --port 7485; jupyter lab --gateway-url http://127.0.0.1:7485
    """
    from lockstep.notebooks.gateway.main import NotLoopback, run

    try:
        serve(
            run(kubeconfig=kubeconfig, host=host, port=port, insecure=insecure, ready=announce),
            leashed=leashed,
            verbose=verbose,
        )
    except NotLoopback as error:
        raise BadInput(str(error)) from None


@app.command()
def admission(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 9443,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    namespace: Annotated[
        str, typer.Option(help="Namespace of its Service and of the Secret with its certificate.")
    ] = SYSTEM_NAMESPACE,
    kubeconfig: Kubeconfig = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Put pods with shares of GPUs into our words, for our scheduler, as a cluster creates them.

    Example: lockstep admission --host 0.0.0.0 --port 9443
    """
    from lockstep.devices.admission.main import run

    part = run(kubeconfig=kubeconfig, host=host, port=port, namespace=namespace, ready=announce)
    serve(part, leashed=leashed, verbose=verbose)
