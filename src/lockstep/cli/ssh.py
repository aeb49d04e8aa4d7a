"""``lockstep ssh``: OpenSSH's own client into a pod, over the API server."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from lockstep.cli.app import App
from lockstep.cli.connect import before_command
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Namespaced
from lockstep.cli.target import Target
from lockstep.keys.files import write_private

app = App()

LOCKSTEP = (sys.executable, "-P", "-m", "lockstep")
SERVER = ("python", "-P", "-m", "lockstep.notebooks.inside.ssh")


@app.command(context_settings={"ignore_unknown_options": True})
def ssh(
    name: Annotated[str, "Notebook, or pod/NAME."],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Run this and return.")
    ] = None,
    *,
    config: Annotated[bool, "--config", "Print an entry for ~/.ssh/config, for editors."] = False,
    target: Namespaced,
) -> None:
    """Open a shell in a notebook's pod with OpenSSH's client; scp and editors work alike.

    \b
    Examples:
      lockstep ssh ana
      lockstep ssh ana -- nvidia-smi
      lockstep ssh ana --config >> ~/.ssh/config      # then: code --remote ssh-remote+ana .
    """
    options = settings(name, where_of(target))
    if config:
        typer.echo(entry(name.removeprefix("pod/"), options), nl=False)
        return
    program = shutil.which("ssh")
    if program is None:
        raise CommandFailed("there is no ssh on PATH", "install OpenSSH's client")
    flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    sys.stdout.flush()
    # OpenSSH joins what it is given with spaces, for a shell at the other end.
    told = [shlex.join(command)] if command else []
    os.execv(program, [program, *flags, name.removeprefix("pod/"), *told])  # noqa: S606


def settings(name: str, where: list[str]) -> dict[str, str]:
    """Return what OpenSSH's client must know to reach a notebook, or ``pod/NAME``.

    Raises:
        BadInput: when the user's key cannot be read or made.
    """
    pod = name if name.startswith("pod/") else f"pod/{name}-0"
    private, public = _key()
    return {
        "HostName": "pod",
        "User": "user",
        "IdentityFile": str(private),
        "IdentitiesOnly": "yes",
        # The API server's certificate says that the way is the right one; the host's key is made
        # for each connection.
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ProxyCommand": shlex.join(
            [*LOCKSTEP, "exec", "-i", *where, pod, "--", *SERVER, public]
        ).replace("%", "%%"),
    }


def entry(host: str, options: dict[str, str]) -> str:
    """Return an entry for ``~/.ssh/config``."""
    return "\n".join([f"Host {host}", *(f"    {k} {v}" for k, v in options.items()), ""])


def where_of(target: Target) -> list[str]:
    """Return the options by which another command reaches the same place."""
    given = {
        "--namespace": target.namespace or before_command.namespace,
        "--kubeconfig": target.kubeconfig or before_command.kubeconfig,
        "--context": target.context or before_command.context,
    }
    found = []
    for option, value in given.items():
        if value:
            text = str(value.absolute()) if isinstance(value, Path) else value
            found += [option, text]
    return found


def _key() -> tuple[Path, str]:
    """Return the file of the user's key for pods, made at first use, and its public part."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    place = base / "lockstep" / "ssh_key"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not place.exists():
            fresh = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            )
            write_private(place, fresh)
        key = serialization.load_ssh_private_key(place.read_bytes(), None)
    except (OSError, ValueError) as error:
        raise BadInput(f"{place}: {error}", "remove it; a new key is made then") from error
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return place, public.decode()
