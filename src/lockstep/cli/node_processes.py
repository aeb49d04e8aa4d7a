"""What makes a machine a node, as processes: each runs in the foreground until it is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.app import App
from lockstep.cli.failure import BadInput, usage
from lockstep.cli.foreground import announce, serve
from lockstep.cli.part_options import Beyond, Running
from lockstep.cli.target import Kubeconfig

app = App()


@app.command("process-node")
def process_node(
    *,
    data: Annotated[Path, "Directory of the pods' files and logs."],
    kubeconfig: Kubeconfig = None,
    name: Annotated[str | None, "Name of the node; the host's name by default."] = None,
    hide: Annotated[
        list[Path] | None, "Directory that pods see empty, beside --data; may be repeated."
    ] = None,
    by_namespace: Annotated[
        Path | None,
        "Directory that pods see empty, but that they may mount: DIR/NAMESPACE/ANY, of their own "
        "namespace.",
    ] = None,
    images: Annotated[
        Path | None, "Table of what to run for images, before the shipped one (YAML)."
    ] = None,
    data_cache: Annotated[
        Path | None, "Start the data cache, with this kubeconfig, once a dataset wants one."
    ] = None,
    certificate: Annotated[
        Path | None, "Certificate shown to the API server, which asks for its logs (PEM)."
    ] = None,
    key: Annotated[Path | None, "Key of --certificate (PEM)."] = None,
    address: Annotated[str, "Address at which the API server reaches this node."] = "127.0.0.1",
    pod_cidr: Annotated[
        str, "Subnet of the pods' addresses, all of which this machine must have."
    ] = "127.0.0.0/8",
    how: Running,
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
            by_namespace=by_namespace,
            images=images,
            data_cache=data_cache,
            ready=announce,
        ),
        how,
    )


@app.command("data-cache")
def data_cache(
    *,
    node: Annotated[str, "Name of the node."],
    data: Annotated[Path, "Directory of what is known, and of files."],
    kubeconfig: Kubeconfig = None,
    hide: Annotated[
        list[Path] | None, "Directory that no dataset may show, beside --data; may be repeated."
    ] = None,
    local: Annotated[
        list[Path] | None,
        "Directory of the node that datasets may show by local://, with --kubelet; may be "
        "repeated.",
    ] = None,
    listen: Annotated[
        str, "Where other nodes and clients reach the cache; port 0 is any."
    ] = "127.0.0.1:0",
    kubelet: Annotated[
        Path | None,
        "Mount datasets into pods of the kubelet with this directory, as the CSI driver "
        "data.lockstep.dev: in a privileged container of the node.",
    ] = None,
    endpoints: Beyond,
    how: Running,
) -> None:
    """Keep datasets on this node. A process node starts it once a dataset wants it.

    \b
    Examples:
      lockstep data-cache --node n1 --data ./cache --kubeconfig ./cluster/kubeconfig
      lockstep data-cache --node n1 --data /var/lib/lockstep/data --kubelet /var/lib/kubelet
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
        local=local or (),
        listen=listen,
        kubelet=kubelet,
        ports=endpoints.ports(),
        ready=announce,
    )
    serve(part, how)


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
    seed: Annotated[int, "Seed of everything random."] = 0,
    how: Running,
) -> None:
    """Simulate nodes with GPUs, and the pods on them.

    Example: lockstep simulate-nodes 64x8,nodes-per-leaf=8,leaves-per-spine=4
    """
    from lockstep.nodes.simulated.main import run
    from lockstep.nodes.simulated.spec import SpecError

    try:
        serve(run(kubeconfig=kubeconfig, spec=spec, seed=seed, ready=announce), how)
    except SpecError as error:
        raise BadInput(f"{error}") from error
