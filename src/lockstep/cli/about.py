"""``version`` and ``manifests``."""

from __future__ import annotations

import asyncio
import json

import typer

from lockstep import __version__
from lockstep.cli.failure import CommandFailed
from lockstep.cli.options import Context, Kubeconfig
from lockstep.cli.output import note

app = typer.Typer(rich_markup_mode=None)


@app.command()
def version(*, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Print the versions of this client and of the API server.

    Example: lockstep version
    """
    from lockstep.cli.connect import Session, Target, run

    print(f"client {__version__}", flush=True)

    async def ask(session: Session) -> str:
        async with asyncio.timeout(5):
            answer = json.loads(await session.client.get_raw("/version"))
        return f"server {answer.get('gitVersion', 'unknown')} ({answer.get('platform', '')})"

    try:
        print(run(Target(kubeconfig, context), ask))
    except TimeoutError:
        note("no server: none has answered within 5 s; --kubeconfig chooses another")
    except CommandFailed as failure:
        note(f"no server: {failure}")
