"""``lockstep network``: prove that all nodes reach each other at the rate the hardware has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lockstep.cli.app import App
from lockstep.cli.connect import InNamespace, run
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.options import Cluster, Namespaced, Output
from lockstep.cli.output import Format, print_lines, print_objects, show

if TYPE_CHECKING:
    from lockstep.api.topology import Rail
    from lockstep.devices.network.core.fabric import Found


@dataclass(frozen=True, slots=True)
class Sources:
    """What tells of the network's tree."""

    lldp: Annotated[
        Path | None, "What lldpcli -f json prints; or a folder of it, NODE.json each."
    ] = None
    ibnetdiscover: Annotated[Path | None, "What ibnetdiscover prints."] = None
    netq: Annotated[Path | None, "What netq show lldp json prints."] = None
    topograph: Annotated[Path | None, "topograph's graph as JSON."] = None
    slurm: Annotated[Path | None, "Slurm's topology.conf."] = None
    hypernodes: Annotated[Path | None, "Volcano's HyperNodes as YAML or JSON."] = None


app = App("Check and discover the training network.")


@app.command()
def check(
    nodes: Annotated[list[str] | None, "Nodes, or job/NAME; all nodes by default."] = None,
    *,
    seconds: Annotated[
        float, typer.Option(min=0.02, max=10, help="Seconds of traffic in each direction.")
    ] = 0.2,
    peers: Annotated[int, range(1025), "Peers of each node on each rail; 0: all."] = 0,
    across: Annotated[
        bool, "--across", "Measure between rails too, where routes lead there."
    ] = False,
    rail: Annotated[
        list[str] | None, "NAME=SUBNET", "A rail; those of the Topology by default."
    ] = None,
    tree: Annotated[
        Path | None, "Judge a recorded tree, or a folder of them, one for each node."
    ] = None,
    record: Annotated[Path | None, "Record this machine's tree into a new folder, and end."] = None,
    here: Annotated[bool, "--here", "Look at this machine alone; ask no cluster."] = False,
    patience: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds until a silent peer is given up.")
    ] = 10.0,
    output: Output = Format.TABLE,
    target: Namespaced,
) -> None:
    """Look at each node's NICs, measure all pairs on all rails, and name what is at fault.

    The node agents look and measure, in rounds of disjoint pairs. The exit code is 1 where
    something is at fault.

    \b
    Examples:
      lockstep network check
      lockstep network check node-1 node-2 node-3 -o json
      lockstep network check job/llm --peers 8
      lockstep network check --record n1 && lockstep network check --tree n1 -o json
    """
    from lockstep.cli.network_check import Wish, measured
    from lockstep.devices.network.core.rails import subnet

    with usage("--rail"):
        rails = [_rail(text) for text in rail or ()]
        for one in rails:
            subnet(one)
    if record is not None:
        from lockstep.cli.network_resources import write_down

        print_lines([write_down(record)])
        return
    if tree is not None or here:
        from lockstep.cli.network_resources import judged

        _show(judged(tree, rails), output)
        return
    wish = Wish(tuple(nodes or ()), tuple(rails), seconds, peers, patience, across)
    _show(run(target, lambda one: measured(one, wish)), output)


def _show(found: dict[str, Any], output: Format) -> None:
    from lockstep.cli.views.network import check_lines

    show(found, check_lines(found), output)
    if found["verdict"]["kind"] != "healthy":
        raise typer.Exit(1)


def _rail(text: str) -> Rail:
    from lockstep.api.topology import Rail

    name, equals, net = text.partition("=")
    if not (name and equals and net):
        raise ValueError(f"{text!r} is no rail; write it as rail0=10.1.0.0/16")
    return Rail(name=name, subnet=net)


@app.command()
def discover(
    given: Sources,
    *,
    apply: Annotated[bool, "--apply", "Make it the cluster's: labels and the Topology."] = False,
    as_hypernodes: Annotated[
        bool, "--as-hypernodes", "Print Volcano's HyperNodes instead."
    ] = False,
    watch: Annotated[
        bool, "--watch", "-w", "With --apply: follow the files until interrupted."
    ] = False,
    output: Output = Format.TABLE,
    target: Cluster,
) -> None:
    """Find the network's tree: from what tools printed, or from what the cluster states.

    Without a file, topograph's labels and Volcano's HyperNodes are read. Of several sources the
    first gives the tree, and where they differ is among the faults. With --watch the files are
    read every 10 s, so that a moved cable counts as soon as they tell of it.

    \b
    Examples:
      ibnetdiscover > fabric.txt; lockstep network discover --ibnetdiscover fabric.txt
      lldpcli -f json show neighbors > node1.json; lockstep network discover --lldp node1.json
      lockstep network discover --slurm topology.conf --apply
      lockstep network discover --ibnetdiscover fabric.txt --apply --watch
    """
    from lockstep.cli import network_discover as work

    files = {option: path for option, path in asdict(given).items() if path is not None}

    def look() -> Found:
        return work.merged({option: work.read(option, path) for option, path in files.items()})

    if watch:
        if not (apply and files):
            raise BadInput("--watch follows files: add --apply and, say, --ibnetdiscover FILE")
        run(target, lambda session: work.follow(session, look))
    named = {option: work.read(option, path) for option, path in files.items()}
    if not named:
        named = run(target, work.from_cluster)
    if not named:
        raise CommandFailed(
            "nothing tells of the network: no file is named, and no node has topograph's labels",
            "give it a file, such as --ibnetdiscover or --lldp",
        )
    found = work.merged(named)
    if apply:
        run(target, lambda session: work.apply(session, found))
    if as_hypernodes:
        from lockstep.compat.fabrics import hypernodes

        shape = Format.JSON if output is Format.JSON else Format.YAML
        print_objects(hypernodes(found.tiers, found.nodes), shape, single=False)
    else:
        from lockstep.cli.views.network import tree_lines

        show(work.shown(found), tree_lines(work.shown(found)), output)


@app.command()
async def plan(
    session: InNamespace,
    job: Annotated[str, "Name of the job."],
    *,
    apply: Annotated[bool, "--apply", "Give the pods their addresses, through the agents."] = False,
    output: Output = Format.TABLE,
) -> None:
    """Plan an address on every rail for each pod of a job.

    Rails and their subnets are those of the Topology. Pods that have addresses keep them. The
    agents set addresses, source rules and routes, and take them back when the pods end.

    \b
    Examples:
      lockstep network plan llm
      lockstep network plan llm --apply
    """
    from lockstep.cli.network_resources import plan as made

    found = await made(session, job, apply=apply)
    lines = (
        f"{pod} on {told['node']}: "
        + ", ".join(f"{one['rail']} {one['address']}" for one in told["addresses"])
        for pod, told in found.items()
    )
    show(found, lines, output)


@app.command()
def resources(
    config: Annotated[Path, "ConfigMap of the SR-IOV or the shared RDMA device plugin."],
    *,
    tree: Annotated[Path | None, "Recorded trees; this machine by default."] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which resources a device plugin's ConfigMap makes of a node's NICs.

    \b
    Examples:
      lockstep network resources sriovdp-config.yaml
      lockstep network resources config.json --tree trees/ -o json
    """
    from lockstep.cli.network_resources import resources as made

    found = made(config, tree)
    lines = [
        f"{node}: {name} {amount} ({', '.join(told['nics'][name]) or 'none'})"
        for node, told in found["nodes"].items()
        for name, amount in told["resources"].items()
    ]
    show(found, [*lines, *(f"problem: {words}" for words in found["problems"])], output)


@app.command()
def attachments(
    *,
    type_: Annotated[str, "--type", "macvlan, ipvlan, host-device or sriov."] = "macvlan",
    resource: Annotated[str, "Resource that hands the NICs out, as mellanox.com/vfs."] = "",
    target: Namespaced,
) -> None:
    """Print a NetworkAttachmentDefinition of Multus for each rail of the Topology.

    Example: lockstep network attachments --type sriov --resource mellanox.com/vfs
    """
    from lockstep.cli import network_resources as work

    rails = run(target, work.rails_of)
    found = work.attachments(rails, target.namespace or "default", type_, resource)
    print_objects(found, Format.YAML, single=False)
