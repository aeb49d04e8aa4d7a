"""``lockstep code``: a notebook's pod in the user's own editor."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Annotated, Final

import typer

from lockstep.cli import ssh
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Namespaced
from lockstep.cli.output import note
from lockstep.cli.places import until_ready
from lockstep.keys.files import write_private

app = App()

EDITORS: Final = ("code", "cursor", "codium", "code-insiders")
INCLUDE: Final = "Include ~/.ssh/lockstep.d/*.conf"
_NAME: Final = re.compile(r"(pod/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@app.command()
def code(
    name: Annotated[str, "Notebook, or pod/NAME."],
    directory: Annotated[str, "Directory in the pod to open; its home when left out."] = "",
    *,
    editor: Annotated[str, "Program to start: code, cursor, codium; the first found."] = "",
    print_link: Annotated[
        bool, "--print", "Print the link that opens the editor, start nothing."
    ] = False,
    target: Namespaced,
) -> None:
    """Open a notebook's pod in VS Code (Remote - SSH), over the API server.

    The entry for it is kept in ~/.ssh/lockstep.d, which ~/.ssh/config is made to include.

    \b
    Examples:
      lockstep code ana
      lockstep code ana /home/jovyan/project --editor cursor
      lockstep code ana --print
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"name: {name!r} is no notebook and no pod/NAME")
    if directory and not directory.startswith("/"):
        raise BadInput(f"directory: {directory!r} is no path from the root, as /home/jovyan")
    if not name.startswith("pod/"):

        async def ready(session: Session) -> None:
            await until_ready(session, name)

        run(target, ready)
    where = ssh.where_of(target)
    host = name.removeprefix("pod/")
    keep(Path.home() / ".ssh", host, ssh.entry(host, ssh.settings(name, where)))
    if print_link:
        typer.echo(f"vscode://vscode-remote/ssh-remote+{host}{directory or '/'}")
        return
    program = next(filter(None, map(shutil.which, [editor] if editor else EDITORS)), None)
    if program is None:
        raise CommandFailed(
            f"no editor was found: {editor or ', '.join(EDITORS)}",
            f"`lockstep code {name} --print` prints a link; any editor reaches the host {host!r}",
        )
    note(f"opening {host} in {Path(program).name}")
    command = [program, "--remote", f"ssh-remote+{host}", directory or "."]
    done = subprocess.run(command, check=False)  # noqa: S603  the user's own editor
    if done.returncode:
        raise CommandFailed(f"{program} ended with {done.returncode}", "is Remote - SSH installed?")


def keep(home: Path, host: str, text: str) -> None:
    """Keep the entry *text* for *host* below *home*, and let ``config`` there include it.

    Raises:
        BadInput: when a file cannot be written.
    """
    place, config = home / "lockstep.d", home / "config"
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(place / f"{host}.conf", text.encode())
        there = config.read_text() if config.exists() else ""
        if INCLUDE not in there.splitlines():
            # Before the first Host, for what follows one holds for that host alone.
            # A config that is a link, into a folder of dotfiles, stays one.
            write_private(config.resolve(), f"{INCLUDE}\n{there}".encode())
    except OSError as error:
        raise BadInput(f"{error.filename or home}: {error.strerror}") from error
