"""Links into the console, which is the door to the pages of pods.

Where no console runs for a cluster on this machine, one is served for as long as the command runs.
"""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lockstep.cli import connect
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.console import links
from lockstep.kube.locate import data_of, embedded_data, embedded_kubeconfig, kubeconfig_files

Show = Callable[[Path, str], None]
"""Takes the directory of a console's links, and a link."""


@dataclass(frozen=True, slots=True)
class Door:
    """A console of this machine: the private directory in which links are left for it."""

    state: Path
    address: str

    def link(self, grant: links.Grant, path: str) -> str:
        """Return a link to *path* that works once, for the user of the grant's kubeconfig."""
        return links.url(self.address, links.write(self.state, grant), path)


def kubeconfig_file(given: Path | None, data: Path | None = None) -> Path:
    """Return the file whose user signs in.

    Raises:
        BadInput: when $KUBECONFIG names several.
    """
    given = given or connect.before_command.kubeconfig
    if given is not None:
        return given.absolute()
    files = kubeconfig_files() if data is None or "KUBECONFIG" in os.environ else []
    if len(files) > 1:
        raise BadInput("$KUBECONFIG names several files; choose one with --kubeconfig")
    return files[0].absolute() if files else (data or embedded_data()) / "kubeconfig"


def of_machine(kubeconfig: Path) -> Door | None:
    """Return the console of the `lockstep up` of a kubeconfig, if this user may sign in to it."""
    for data in (kubeconfig.parent, kubeconfig.parent.parent, data_of(kubeconfig)):
        if data is None:
            continue
        state = data / "console"
        if embedded_kubeconfig(data) is None or not os.access(state, os.W_OK):
            continue
        if address := links.address(state):
            return Door(state, address)
    return None


def launch(state: Path, link: str) -> None:
    """Open a link in the browser.

    Raises:
        CommandFailed: when there is no browser.
    """
    # Arguments of a process are no secret, so the browser is given a private file that leads on.
    handle, name = tempfile.mkstemp(dir=state / "links", prefix="open-", suffix=".html")
    with os.fdopen(handle, "w") as file:
        file.write(f'<meta http-equiv="refresh" content="0;url={html.escape(link)}">')
    if not webbrowser.open(Path(name).as_uri()):
        Path(name).unlink(missing_ok=True)
        raise CommandFailed("no browser was found", "--print prints the link")


def show_link(state: Path, link: str) -> None:
    """Print a link: for another browser."""
    print(link, flush=True)


async def serve(grant: links.Grant, path: str, show: Show) -> None:
    """Serve a console of the user's own on loopback until cancelled; show a link to *path*."""
    from lockstep.console.main import run
    from lockstep.console.options import Options

    with tempfile.TemporaryDirectory(prefix="lockstep-door-") as made:
        state = Path(made)
        options = Options(
            kubeconfig=Path(grant.kubeconfig), context=grant.context, port=0, state=state
        )

        def ready(line: str) -> None:
            show(state, Door(state, line.rpartition(" ")[2].strip()).link(grant, path))

        await run(options, ready=ready)
