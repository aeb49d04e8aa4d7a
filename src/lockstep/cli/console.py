"""``lockstep console``: open the console, or serve it."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lockstep.cli import connect
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.foreground import announce, serve
from lockstep.cli.options import Context, Kubeconfig, Leashed, Verbose
from lockstep.console import links
from lockstep.kube.locate import embedded_data, embedded_kubeconfig, kubeconfig_files

if TYPE_CHECKING:
    from lockstep.kube.client import Client

app = typer.Typer(rich_markup_mode=None)


@app.command()
def console(
    *,
    print_link: Annotated[
        bool, typer.Option("--print", help="Print the one-time link instead of opening it.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the `lockstep up` whose console it is; the usual one by default.",
            show_default=False,
        ),
    ] = None,
    serving: Annotated[
        bool, typer.Option("--serve", help="Run the console itself, until it is interrupted.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --serve: port; 0 chooses a free one.")
    ] = 7490,
    host: Annotated[
        str, typer.Option(help="With --serve: loopback address to listen on.")
    ] = "127.0.0.1",
    state: Annotated[
        Path | None,
        typer.Option(help="With --serve: private directory in which links are left for it."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="With --serve: address at which browsers reach it, https://NAME."),
    ] = None,
    apps_host: Annotated[
        str,
        typer.Option(help="With --serve: name below which apps are reached; apps.NAME by default."),
    ] = "",
    certificate: Annotated[
        Path | None, typer.Option(help="With --serve: certificate for TLS (PEM).")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="With --serve: its key (PEM).")] = None,
    self_signed: Annotated[
        bool, typer.Option("--self-signed", help="With --serve: make a certificate for itself.")
    ] = False,
    records: Annotated[
        Path | None, typer.Option(help="With --serve: the file of usage records, for costs.")
    ] = None,
    audit_log: Annotated[
        Path | None,
        typer.Option(help="With --serve: the API server's audit log (audit.k8s.io/v1, JSON)."),
    ] = None,
    oidc_issuer: Annotated[
        str, typer.Option(help="With --serve: issuer at which users sign in, https://NAME.")
    ] = "",
    oidc_client: Annotated[
        str, typer.Option(help="With --serve: the client that the console is there.")
    ] = "",
    oidc_secret_file: Annotated[
        Path | None, typer.Option(help="With --serve: file with that client's secret.")
    ] = None,
    oidc_ca: Annotated[
        Path | None, typer.Option(help="With --serve: certificate authority of the issuer (PEM).")
    ] = None,
    proxy_header: Annotated[
        str, typer.Option(help="With --serve: header in which a trusted proxy names the user.")
    ] = "",
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="With --serve: network from which that header counts, 10.0.0.0/8."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    leashed: Leashed = False,
    verbose: Verbose = False,
) -> None:
    """Open the console in the browser, signed in as the user of the kubeconfig.

    \b
    Examples:
      lockstep console
      lockstep console --print
      lockstep console --serve --kubeconfig ~/.kube/config --state ~/.lockstep-console
    """
    if serving:
        from lockstep.console.main import NotSafe, Options, run
        from lockstep.console.planning import Simulator

        options = Options(
            kubeconfig=kubeconfig,
            port=port,
            host=host,
            state=state,
            origins=tuple(origin or ()),
            apps_host=apps_host,
            certificate=certificate,
            key=key,
            self_signed=self_signed,
            records=records,
            audit_log=audit_log,
            oidc_issuer=oidc_issuer,
            oidc_client=oidc_client,
            oidc_secret_file=oidc_secret_file,
            oidc_ca=oidc_ca,
            proxy_header=proxy_header,
            proxies=tuple(proxy or ()),
        )
        try:
            part = run(options, ready=announce, simulator=Simulator(_what_if, _plan))
            serve(part, leashed=leashed, verbose=verbose)
        except NotSafe as error:
            raise BadInput(str(error)) from None
        return
    directory = (data or embedded_data()).absolute()
    address = _address(directory, state)
    given = kubeconfig or connect.before_command.kubeconfig
    grant = links.Grant(str(_kubeconfig(directory, given)), context or "")
    where = state or directory / "console"
    link = links.url(address, links.write(where, grant))
    if print_link:
        print(link)
        return
    _open(where, link)
    print(f"opened {address}; `lockstep console --print` prints a link for another browser")


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


def _kubeconfig(data: Path, given: Path | None) -> Path:
    """Return the file whose user signs in.

    Raises:
        BadInput: when $KUBECONFIG names several.
    """
    if given is not None:
        return given.absolute()
    files = kubeconfig_files() if "KUBECONFIG" in os.environ else []
    if len(files) > 1:
        raise BadInput("$KUBECONFIG names several files; choose one with --kubeconfig")
    if files:
        return files[0].absolute()
    return data / "kubeconfig"


def _open(state: Path, link: str) -> None:
    # Arguments of a process are no secret, so the browser is given a private file that leads on.
    handle, name = tempfile.mkstemp(dir=state / "links", prefix="open-", suffix=".html")
    with os.fdopen(handle, "w") as file:
        file.write(f'<meta http-equiv="refresh" content="0;url={html.escape(link)}">')
    if not webbrowser.open(Path(name).as_uri()):
        Path(name).unlink(missing_ok=True)
        raise CommandFailed("no browser was found", "`lockstep console --print` prints the link")
