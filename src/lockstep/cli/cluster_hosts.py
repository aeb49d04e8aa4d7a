"""``lockstep cluster create`` and ``admit``: a cluster from bare hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.options import Output
from lockstep.cli.output import Format, encode, print_lines, structured


def create(
    *,
    hosts: Annotated[Path, typer.Option(metavar="FILE", help="The hosts, and how to reach each.")],
    access: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where the administrator's kubeconfig is written."),
    ] = Path("lockstep.kubeconfig"),
    remove: Annotated[
        bool,
        typer.Option(
            "--remove", help="Take Lockstep off the hosts: services, jobs, objects and files."
        ),
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
    if structured(output):
        print(encode({"kubeconfig": str(access.absolute()), "hosts": done}, output), end="")
        return
    print_lines(f"{name}: ready" for name in done)
    print_lines([f"export KUBECONFIG={access.absolute()}"])


def admit(
    name: Annotated[str, typer.Argument(help="The node's name.")],
    *,
    address: Annotated[str, typer.Option(help="Where the API server reaches it.")],
    data: Annotated[Path, typer.Option(help="The control plane's data directory.")],
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
