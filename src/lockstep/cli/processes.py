"""The parts of a control plane as processes: each runs in the foreground until it is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.cli.app import App
from lockstep.cli.failure import BadInput
from lockstep.cli.foreground import announce, serve
from lockstep.cli.part_options import (
    Election,
    Endpoints,
    Host,
    LeaseNamespace,
    Port,
    Probes,
    Running,
)
from lockstep.cli.target import Kubeconfig
from lockstep.controllers.options import Options

app = App()


@app.command()
def apiserver(
    *,
    data: Annotated[Path, "Directory of the database, keys and kubeconfigs."],
    port: Port = 7443,
    host: Host = "127.0.0.1",
    kubeconfig: Annotated[Path | None, "Where to write it; DATA/kubeconfig by default."] = None,
    audit_log: Annotated[
        Path | None, "File in which changes by users are written (audit.k8s.io/v1, JSON)."
    ] = None,
    how: Running,
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
        how,
    )


@app.command()
def scheduler(
    *,
    kubeconfig: Kubeconfig = None,
    election: Election,
    endpoints: Endpoints,
    serve_names: Annotated[
        list[str] | None,
        "--serve",
        "NAME",
        "Place pods of this schedulerName too, in place of the scheduler of that name, "
        "which must not run; may be repeated.",
    ] = None,
    how: Running,
) -> None:
    """Run the gang scheduler.

    \b
    Examples:
      lockstep scheduler --kubeconfig ~/.kube/config
      lockstep scheduler --serve volcano --serve kai-scheduler
    """
    from lockstep.scheduler.main import run

    serve(
        run(
            kubeconfig=kubeconfig,
            identity=election.identity,
            leader_elect=election.leader_elect,
            lease_namespace=election.lease_namespace,
            ports=endpoints.ports(),
            names=tuple(serve_names or ()),
            ready=announce,
        ),
        how,
    )


@app.command()
def controllers(
    *,
    kubeconfig: Kubeconfig = None,
    election: Election,
    endpoints: Endpoints,
    install_dialects: Annotated[
        str,
        "Create the CRDs of these dialects where they are missing: all, or names "
        "separated by commas.",
    ] = "",
    options: Options,
    how: Running,
) -> None:
    """Run the controllers of every capability.

    Example: lockstep controllers --kubeconfig ~/.kube/config
    """
    from lockstep.compat import dialects
    from lockstep.controllers.main import run

    try:
        wanted = dialects.parse(install_dialects)
    except ValueError as error:
        raise BadInput(f"--install-dialects: {error}") from None

    serve(
        run(
            kubeconfig=kubeconfig,
            identity=election.identity,
            leader_elect=election.leader_elect,
            lease_namespace=election.lease_namespace,
            ports=endpoints.ports(),
            install_dialects=wanted,
            options=options,
            ready=announce,
        ),
        how,
    )


@app.command()
def router(
    *,
    port: Port = 7480,
    host: Annotated[
        str, "Address to listen on; beyond loopback with TLS and tokens."
    ] = "127.0.0.1",
    domain: Annotated[str, "Reach services also as NAME-NAMESPACE.DOMAIN."] = "",
    name: Annotated[str, "Name of its Router object; the host's by default."] = "",
    certificate: Annotated[Path | None, "Certificate for TLS, PEM."] = None,
    key: Annotated[Path | None, "Its key, PEM."] = None,
    tokens: Annotated[Path | None, "File of bearer tokens, TOKEN [NAMESPACE,...] a line."] = None,
    insecure: Annotated[
        bool, "Listen beyond loopback with tokens alone, behind what speaks TLS."
    ] = False,
    inside: Annotated[
        str,
        "ADDRESS:PORT",
        "Where pods of a cluster come, in the clear and without tokens, as to any Service "
        "of the cluster: a network policy must keep others away.",
    ] = "",
    url: Annotated[str, "The Service through which pods come: http://NAME.NAMESPACE.svc."] = "",
    probes: Probes,
    kubeconfig: Kubeconfig = None,
    how: Running,
) -> None:
    """Carry requests to the replicas of inference services, and hold those that must wait.

    Example: lockstep router --port 7480

    Example: lockstep router --host 0.0.0.0 --certificate tls.crt --key tls.key --tokens tokens
    """
    from lockstep.serve.router.authentication import BadTokens
    from lockstep.serve.router.guard import Guard, Inside, NotSafe
    from lockstep.serve.router.main import run

    guard = Guard(certificate, key, tokens, behind_tls=insecure)
    carried = run(
        kubeconfig=kubeconfig,
        host=host,
        port=port,
        domain=domain,
        name=name,
        guard=guard,
        inside=Inside.of(inside, url) if inside else None,
        ports=probes.ports(),
        ready=announce,
    )
    try:
        serve(carried, how)
    except (NotSafe, BadTokens) as error:
        raise BadInput(str(error)) from None


@app.command()
def gateway(
    *,
    port: Port = 7485,
    host: Host = "127.0.0.1",
    insecure: Annotated[bool, "Listen beyond loopback without TLS, behind what speaks it."] = False,
    kubeconfig: Kubeconfig = None,
    how: Running,
) -> None:
    """Serve kernels in pods of their own to Jupyter, and notebooks to browsers.

    Example: lockstep gateway --port 7485; jupyter lab --gateway-url http://127.0.0.1:7485
    """
    from lockstep.notebooks.gateway.main import NotLoopback, run

    try:
        serve(
            run(kubeconfig=kubeconfig, host=host, port=port, insecure=insecure, ready=announce), how
        )
    except NotLoopback as error:
        raise BadInput(str(error)) from None


@app.command()
def admission(
    *,
    port: Port = 9443,
    host: Host = "127.0.0.1",
    namespace: Annotated[
        str, "Namespace of its Service and of the Secret with its certificate."
    ] = SYSTEM_NAMESPACE,
    kubeconfig: Kubeconfig = None,
    how: Running,
) -> None:
    """Put pods with shares of GPUs into our words, for our scheduler, as a cluster creates them.

    Example: lockstep admission --host 0.0.0.0 --port 9443
    """
    from lockstep.devices.admission.main import run

    part = run(kubeconfig=kubeconfig, host=host, port=port, namespace=namespace, ready=announce)
    serve(part, how)


@app.command()
def recorder(
    *,
    records: Annotated[Path, "SQLite file of who used which GPU."],
    closed_days: Annotated[
        Path | None, "Folder into which days that are over go as Parquet."
    ] = None,
    kubeconfig: Kubeconfig = None,
    lease_namespace: LeaseNamespace = SYSTEM_NAMESPACE,
    endpoints: Endpoints,
    how: Running,
) -> None:
    """Record who used which GPU, beside controllers that run without --records.

    One recorder writes a file: a second one stands by until the first has ended.

    Example: lockstep recorder --records /var/lib/lockstep/usage.db
    """
    from lockstep.controllers.recorder import run

    part = run(
        kubeconfig=kubeconfig,
        records=records,
        closed_days=closed_days,
        lease_namespace=lease_namespace,
        ports=endpoints.ports(),
        ready=announce,
    )
    serve(part, how)
