"""``lockstep manifests``: what to apply to a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from lockstep.cli.app import App
from lockstep.cli.failure import BadInput

app = App("Manifests to apply to a cluster.", invoke_without_command=True, no_args_is_help=False)


@app.callback()
def everything(
    context: typer.Context,
    *,
    image: Annotated[str | None, "The image of Lockstep: registry.example.org/lockstep:1."] = None,
) -> None:
    """Print everything that a cluster needs as YAML: CRDs, roles, Deployments.

    Example: lockstep manifests --image registry.example.org/lockstep:1 |
    kubectl apply --server-side -f -
    """
    if context.invoked_subcommand is not None:
        if image is not None:
            raise BadInput(f"--image does not go with {context.invoked_subcommand}")
        return
    print(manifest(image), end="")


def manifest(image: str | None) -> str:
    """Return the manifest that comes with the program, with the *image* that is wanted.

    It is the image of every part, and the one that brings the launcher into pods of jobs.
    """
    from importlib.resources import files

    from lockstep import __version__

    text = (files("lockstep.cli") / "cluster.yaml").read_text()
    if image is not None:
        for key in ("image", "value"):
            text = text.replace(f"{key}: lockstep:{__version__}\n", f"{key}: {image}\n")
    return text


@app.command()
def crds(
    *,
    dialect: Annotated[
        str, "Print the kinds of these dialects instead: all, or names separated by commas."
    ] = "",
) -> None:
    """Print the custom resource definitions as YAML.

    Example: lockstep manifests crds | kubectl apply --server-side -f -
    """
    from lockstep.api import crd

    if not dialect:
        print(crd.to_yaml(), end="")
        return
    from lockstep.compat import dialects

    try:
        wanted = dialects.parse(dialect)
    except ValueError as error:
        raise BadInput(f"--dialect: {error}") from None
    _print(dialects.manifests(wanted))


def _print(objects: Iterable[dict[str, Any]]) -> None:
    import yaml

    print(yaml.safe_dump_all(objects, sort_keys=False, width=100), end="")


@app.command()
def creator() -> None:
    """Print the admission policy that writes down who created a job (Kubernetes 1.36 and newer).

    Example: lockstep manifests creator | kubectl apply --server-side -f -
    """
    from lockstep.api import creator_policy

    _print(creator_policy.objects())


@app.command()
def default_queue() -> None:
    """Print the admission policy that puts in a namespace's default queue (Kubernetes 1.36).

    Example: lockstep manifests default-queue | kubectl apply --server-side -f -
    """
    from lockstep.api import queue_policy

    _print(queue_policy.default_objects())


@app.command()
def queue_use() -> None:
    """Print the admission policy that holds who may use queues (Kubernetes 1.30 and newer).

    Example: lockstep manifests queue-use | kubectl apply --server-side -f -
    """
    from lockstep.api import queue_policy

    _print(queue_policy.objects())


@app.command()
def team_borders() -> None:
    """Print the admission policy that keeps members from what isolates their team.

    It needs Kubernetes 1.30 or newer.

    Example: lockstep manifests team-borders | kubectl apply --server-side -f -
    """
    from lockstep.api import team_borders

    _print(team_borders.objects())


@app.command()
def team_images() -> None:
    """Print the admission policy that holds the images of teams (Kubernetes 1.30 and newer).

    Example: lockstep manifests team-images | kubectl apply --server-side -f -
    """
    from lockstep.api import team_images

    _print(team_images.objects())


@app.command()
def alarms() -> None:
    """Print the alarms about devices, jobs and Lockstep itself as a file of Prometheus rules.

    Example: lockstep manifests alarms > /etc/prometheus/rules/lockstep.yaml
    """
    import yaml

    print(yaml.safe_dump(alarm_groups(), sort_keys=False, width=100), end="")


def alarm_groups() -> dict[str, Any]:
    """Return all alarms as Prometheus' file of rules has them."""
    from lockstep.devices.core import rules
    from lockstep.insight import alarms as insight

    own = rules.group("lockstep-insight", insight.ALARMS)
    return {"groups": [*rules.rules()["groups"], own]}


@app.command()
def dashboard() -> None:
    """Print a Grafana board of GPUs, jobs, the queue and Lockstep itself as JSON.

    Example: lockstep manifests dashboard > lockstep.json
    """
    import json

    from lockstep.insight.board import board

    print(json.dumps(board(), indent=2))
