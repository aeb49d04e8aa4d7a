"""``lockstep console``: open the console, or serve it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lockstep.cli import door
from lockstep.cli.app import App
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Cluster
from lockstep.cli.part_options import Running
from lockstep.console import links
from lockstep.console.options import Options
from lockstep.kube.locate import embedded_data, embedded_kubeconfig

if TYPE_CHECKING:
    from lockstep.kube.client import Client

app = App()


@app.command()
def console(
    *,
    print_link: Annotated[
        bool, "--print", "Print the one-time link instead of opening it."
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the `lockstep up`; by default that of the kubeconfig.",
            show_default=False,
        ),
    ] = None,
    serving: Annotated[bool, "--serve", "Run the console itself, until it is interrupted."] = False,
    options: Options,
    target: Cluster,
    how: Running,
) -> None:
    """Open the console in the browser, signed in as the user of the kubeconfig.

    \b
    Examples:
      lockstep console
      lockstep console --print
      lockstep console --serve --kubeconfig ~/.kube/config --state ~/.lockstep-console
    """
    if serving:
        from lockstep.console.main import NotSafe, run
        from lockstep.console.planning import Simulator

        served = replace(options, kubeconfig=target.kubeconfig, context=target.context)
        try:
            part = run(served, ready=announce, simulator=Simulator(_what_if, _plan))
            serve(part, how)
        except NotSafe as error:
            raise BadInput(str(error)) from None
        return
    grant, found = _door(data, options.state, target.kubeconfig, target.context or "")
    link = links.url(found.address, links.write(found.state, grant))
    if print_link:
        print(link)
        return
    door.launch(found.state, link)
    print(f"opened {found.address}; `lockstep console --print` prints a link for another browser")


async def _what_if(client: Client, namespace: str, objects: list[dict[str, Any]]) -> list[Any]:
    """Return what would become of jobs if they were submitted now, as trees."""
    from lockstep.cli.connect import Session
    from lockstep.cli.whatif import lines, what_if

    try:
        found = await what_if(Session(client, namespace, True), objects)
    except (BadInput, CommandFailed) as error:
        raise ValueError(str(error)) from None
    return [{**one.tree(), "lines": lines(one)} for one in found]


async def _plan(client: Client, queues: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what a plan for queues would change now."""
    from lockstep.cli.connect import Session
    from lockstep.cli.whatif import plan_effect

    try:
        return await plan_effect(Session(client, "default", True), queues)
    except (BadInput, CommandFailed) as error:
        raise ValueError(str(error)) from None


def _door(
    data: Path | None, state: Path | None, kubeconfig: Path | None, context: str
) -> tuple[links.Grant, door.Door]:
    """Return whose link it is, and the console: that of the kubeconfig's `lockstep up` by default.

    Raises:
        CommandFailed: when none runs.
    """
    directory = (data or embedded_data()).absolute()
    user = door.kubeconfig_file(kubeconfig, directory)
    found = door.of_machine(user) if data is None and state is None else None
    if found is None:
        found = door.Door(state or directory / "console", _address(directory, state))
    return links.Grant(str(user), context), found


def _address(data: Path, state: Path | None) -> str:
    """Return where the console listens.

    Raises:
        CommandFailed: when none runs.
    """
    if state is not None:
        found = links.address(state)
    else:
        found = links.address(data / "console") if embedded_kubeconfig(data) is not None else ""
    if not found:
        raise CommandFailed(
            f"no console runs on {state or data}",
            "`lockstep up` starts one; `lockstep console --serve --state DIR` serves one for the "
            "cluster of a kubeconfig",
        )
    return found
