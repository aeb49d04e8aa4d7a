"""``lockstep cluster``: set Lockstep up on a cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lockstep.cli import cluster_hosts
from lockstep.cli.connect import Target, run
from lockstep.cli.options import Context, Kubeconfig, Output
from lockstep.cli.output import Format, encode, print_lines, structured

app = typer.Typer(help="Set Lockstep up on a cluster.", rich_markup_mode=None)


@app.callback()
def _cluster() -> None:
    """Set Lockstep up on a cluster."""


app.command()(cluster_hosts.create)
app.command(hidden=True)(cluster_hosts.admit)


@app.command()
def install(
    *,
    image: Annotated[
        str | None, typer.Option(help="The image of Lockstep: registry.example.org/lockstep:1.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each node is, and change nothing.")
    ] = False,
    taint: Annotated[
        bool,
        typer.Option(
            "--taint",
            help="Keep pods that ask for no card off the nodes with cards. The cluster needs the "
            "admission plugin ExtendedResourceToleration.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(help="Measure the network between nodes with RDMA, where there are two."),
    ] = True,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take Lockstep off; its kinds and their objects stay.")
    ] = False,
    output: Output = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
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

    target = Target(kubeconfig, context)
    if remove:
        print_lines(f"{one} deleted" for one in run(target, work.remove))
        return
    if dry_run:
        found = run(target, work.profiles)
    else:
        found = run(target, lambda session: work.install(session, image, taint))
    proven = None if dry_run or not check else run(target, lambda one: work.check(one, found))
    if structured(output):
        told: dict[str, object] = {name: asdict(one) for name, one in found.items()}
        print(encode(told | ({"network check": proven} if proven else {}), output), end="")
        return
    for name, one in sorted(found.items()):
        rdma = ", RDMA" if one.rdma else ""
        print_lines([f"{name}: {one.kind}{rdma}", *(f"  missing: {w}" for w in one.missing)])
    if proven:
        from lockstep.cli.views.network import check_lines

        print_lines(check_lines(proven))
