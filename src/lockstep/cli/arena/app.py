"""``lockstep arena``, which hands its words to Arena's own parser."""

from __future__ import annotations

import typer

from lockstep.cli.app import App

app = App()


@app.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    },
)
def arena(ctx: typer.Context) -> None:
    """Arena's command line: submit, list, get, logs, attach, delete, prune, top, data, scale.

    \b
    Examples:
      arena submit pytorchjob --name digits --workers 2 --image pytorch "python train.py"
      lockstep arena list
      lockstep arena submit tfjob --help
    """
    from lockstep.cli.arena.commands import run

    run(ctx.args)
