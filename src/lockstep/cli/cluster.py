"""``lockstep cluster``: set Lockstep up on a cluster."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.app import App
from lockstep.cli.connect import run
from lockstep.cli.options import Cluster, Output
from lockstep.cli.output import Format, encode, print_lines, show, structured

app = App("Set Lockstep up on a cluster.")


@app.command()
def install(
    *,
    image: Annotated[str | None, "The image of Lockstep: registry.example.org/lockstep:1."] = None,
    dry_run: Annotated[
        bool, "--dry-run", "Say what cluster and nodes lack, and change nothing."
    ] = False,
    taint: Annotated[
        bool,
        "--taint",
        "Keep pods that ask for no card off the nodes with cards. The cluster needs the "
        "admission plugin ExtendedResourceToleration.",
    ] = False,
    check: Annotated[
        bool, "Measure the network between nodes with RDMA, where there are two."
    ] = True,
    remove: Annotated[
        bool, "--remove", "Take Lockstep off; its kinds and their objects stay."
    ] = False,
    output: Output = Format.TABLE,
    target: Cluster,
) -> None:
    """Install Lockstep: kinds, rights, parts, and the node agent where it has something to do.

    Each node is looked at: its accelerators and RDMA, by its capacity and node feature discovery's
    labels. It gets the labels lockstep.dev/profile and lockstep.dev/rdma, and what is missing there
    is said with how to get it. It may be repeated at any time.

    \b
    Examples:
      lockstep cluster install --dry-run
      lockstep cluster install --image registry.example.org/lockstep:1
      lockstep cluster install --taint --no-check
      lockstep cluster install --remove
    """
    from lockstep.cli import cluster_install as work

    if remove:
        print_lines(f"{one} deleted" for one in run(target, work.remove))
        return
    also: dict[str, object] = {}
    if dry_run:
        from lockstep.cli.cluster_lacks import lacks, look
        from lockstep.cli.cluster_lacks import told as as_lines

        findings = list(lacks(run(target, look)))
        also = {"the cluster": [asdict(one) for one in findings]}
        if not structured(output):
            print_lines(["the cluster", *as_lines(findings)])
        found = run(target, work.profiles)
    else:
        found = run(target, lambda session: work.install(session, image, taint))
    proven = None if dry_run or not check else run(target, lambda one: work.check(one, found))
    if structured(output):
        also |= {"network check": proven} if proven else {}
        print(encode({name: asdict(one) for name, one in found.items()} | also, output), end="")
        return
    for name, one in sorted(found.items()):
        rdma = ", RDMA" if one.rdma else ""
        print_lines([f"{name}: {one.kind}{rdma}", *(f"  missing: {w}" for w in one.missing)])
    if proven:
        from lockstep.cli.views.network import check_lines

        print_lines(check_lines(proven))


@app.command()
def create(
    *,
    hosts: Annotated[Path, "FILE", "The hosts, and how to reach each."],
    access: Annotated[Path, "FILE", "Where the administrator's kubeconfig is written."] = Path(
        "lockstep.kubeconfig"
    ),
    remove: Annotated[
        bool, "--remove", "Take Lockstep off the hosts: services, jobs, objects and files."
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Make a cluster from bare hosts over ssh: control plane, nodes and their agents.

    The first host of the file gets the control plane; all of them run pods. What is done already
    is left as it is, so a run that broke off, or a longer file, is taken up by running it again.
    A host's key must be in known_hosts or in the file.

    \b
    Examples:
      lockstep cluster create --hosts hosts.yaml
      KUBECONFIG=lockstep.kubeconfig lockstep list nodes
      lockstep cluster create --hosts hosts.yaml --remove
    """
    import asyncio

    from lockstep import __version__
    from lockstep.cli.hosts import create as work
    from lockstep.cli.hosts.file import read

    site = read(hosts)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if remove:
        asyncio.run(work.remove(site, say))
        return
    done = asyncio.run(work.create(site, access, __version__, say))
    place = access.absolute()
    lines = [*(f"{name}: ready" for name in done), f"export KUBECONFIG={place}"]
    show({"kubeconfig": str(place), "hosts": done}, lines, output)


@app.command(hidden=True)
def admit(
    name: Annotated[str, "The node's name."],
    *,
    address: Annotated[str, "Where the API server reaches it."],
    data: Annotated[Path, "The control plane's data directory."],
) -> None:
    """Print the credentials with which another machine becomes a node, as JSON with its files.

    Example: lockstep cluster admit gpu-2 --address 10.0.0.2 --data /var/lib/lockstep/cluster
    """
    import json

    from lockstep.apiserver.auth.pki import Pki
    from lockstep.cli.failure import BadInput

    parts = ("process-node", "agent")
    kept = {f"{part}.kubeconfig": data / "kubeconfigs" / f"{part}.kubeconfig" for part in parts}
    if not (data / "pki" / "ca.crt").exists():
        raise BadInput(f"{data} is no directory of a control plane", "see `lockstep up --data`")
    pair = Pki(data / "pki").node(name, address)
    files = {**kept, "node.crt": pair.certificate, "node.key": pair.key}
    typer.echo(json.dumps({one: path.read_text() for one, path in files.items()}))
