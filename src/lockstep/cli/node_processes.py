"""What makes a machine a node, as processes: each runs in the foreground until it is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.failure import BadInput
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Kubeconfig, Leashed, Verbose
from lockstep.cli.usage import usage

app = typer.Typer(rich_markup_mode=None)


@app.command("process-node")
def process_node(
    *,
    data: Annotated[Path, typer.Option(help="Directory of the pods' files and logs.")],
    kubeconfig: Kubeconfig = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the node; the host's name by default.")
    ] = None,
    hide: Annotated[
        list[Path] | None,
        typer.Option(help="Directory that pods see empty, beside --data; may be repeated."),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="Table of what to run for images, before the shipped one (YAML)."),
    ] = None,
    data_cache: Annotated[
        Path | None,
        typer.Option(help="Start the data cache, with this kubeconfig, once a dataset wants one."),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Certificate shown to the API server, which asks for its logs (PEM)."),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Key of --certificate (PEM).")] = None,
    address: Annotated[
        str, typer.Option(help="Address at which the API server reaches this node.")
    ] = "127.0.0.1",
    pod_cidr: Annotated[
        str,
        typer.Option(help="Subnet of the pods' addresses, all of which this machine must have."),
    ] = "127.0.0.0/8",
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Make this machine a node that runs pods as processes.

    Example: lockstep process-node --data ./node --kubeconfig ./cluster/kubeconfig
    """
    from lockstep.nodes.process.certificates import Pair
    from lockstep.nodes.process.main import Where, run

    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key go together")
    where = Where(address, pod_cidr)
    with usage("--pod-cidr"):
        _ = where.network
    serve(
        run(
            kubeconfig=kubeconfig,
            data=data,
            where=where,
            pair=Pair(certificate, key) if certificate and key else None,
            name=name,
            hide=hide or (),
            images=images,
            data_cache=data_cache,
            ready=announce,
        ),
        leashed=leashed,
        verbose=verbose,
    )


@app.command("data-cache")
def data_cache(
    *,
    node: Annotated[str, typer.Option(help="Name of the node.")],
    data: Annotated[Path, typer.Option(help="Directory of what is known, and of files.")],
    kubeconfig: Kubeconfig = None,
    hide: Annotated[
        list[Path] | None,
        typer.Option(help="Directory that no dataset may show, beside --data; may be repeated."),
    ] = None,
    listen: Annotated[
        str, typer.Option(help="Where other nodes and clients reach the cache; port 0 is any.")
    ] = "127.0.0.1:0",
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Keep datasets on this node. It is started by the node once a dataset wants it.

    Example: lockstep data-cache --node n1 --data ./cache --kubeconfig ./cluster/kubeconfig
    """
    try:
        from lockstep.data.cache.main import run
    except ImportError as error:
        raise BadInput(f"{error}: datasets need more; pip install 'lockstep[data]'") from error

    part = run(
        kubeconfig=kubeconfig,
        node=node,
        data=data,
        hide=hide or (),
        listen=listen,
        ready=announce,
    )
    serve(part, leashed=leashed, verbose=verbose)


@app.command("simulate-nodes")
def simulate_nodes(
    spec: Annotated[
        str | None,
        typer.Argument(
            help="NODESxGPUS with options, or a file: 64x8,nodes-per-leaf=8,leaves-per-spine=4; "
            "left out, only nodes of NodePools are simulated.",
            show_default=False,
        ),
    ] = None,
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
