"""``lockstep manifests``: what to apply to a cluster."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Manifests to apply to a cluster.", rich_markup_mode=None, no_args_is_help=True
)


@app.command()
def crds() -> None:
    """Print the custom resource definitions as YAML.

    Example: lockstep manifests crds | kubectl apply -f -
    """
    from lockstep.api import crd

    print(crd.to_yaml(), end="")
