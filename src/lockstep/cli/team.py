"""``lockstep team``: list, create, change and delete teams."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lockstep.api.team import TEAMS
from lockstep.cli import kinds, quantities
from lockstep.cli.choice import Choice
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.lifecycle import delete_all
from lockstep.cli.listing import list_all
from lockstep.cli.options import Context, Kubeconfig, Output
from lockstep.cli.output import Format
from lockstep.kube.errors import AlreadyExists, NotFound

app = typer.Typer(
    help="Teams: rights, queue and quotas from one object.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="Name of the team.")]
Members = Annotated[
    list[str] | None,
    typer.Option(
        "--member",
        metavar="NAME[:ROLE]",
        help="A user and what they may do: view, edit (default) or admin; may be repeated. "
        "group:NAME is a group, sa:NAMESPACE/NAME a service account.",
    ),
]
Amounts = Annotated[list[str] | None, typer.Option(metavar="RESOURCE=AMOUNT")]
_KINDS = {"group": "Group", "sa": "ServiceAccount", "user": "User"}
_ROLES = {"view": "View", "edit": "Edit", "admin": "Admin"}


def member(text: str) -> dict[str, str]:
    """Return the member that *text* means: ``ana``, ``ana:admin``, ``group:lab:view``.

    Raises:
        BadInput: when it names no member or an unknown role.
    """
    kind, name, role = "User", text, "Edit"
    prefix, colon, rest = name.partition(":")
    if colon and prefix in _KINDS:
        kind, name = _KINDS[prefix], rest
    before, colon, last = name.rpartition(":")
    if colon:
        if last.lower() not in _ROLES:
            raise BadInput(f"--member {text}: {last!r} is no role; use view, edit or admin")
        name, role = before, _ROLES[last.lower()]
    if not name:
        raise BadInput(f"--member {text}: names no member; write NAME or NAME:ROLE")
    return {"kind": kind, "name": name, "role": role}


@app.command("list")
def list_(
    *, output: Output = Format.TABLE, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """List the teams.

    Example: lockstep team list
    """
    run(
        Target(kubeconfig, context),
        lambda session: list_all(session, "team", TEAMS, Choice(), output),
    )


@app.command()
def create(
    name: Name,
    *,
    members: Members = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", help="A namespace of the team; its own name by default."),
    ] = None,
    guaranteed: Amounts = None,
    limit: Amounts = None,
    parent: Annotated[str | None, typer.Option(help="Queue that the team's is part of.")] = None,
    quota: Amounts = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Keep pods of other teams from connecting.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a team with its namespaces, rights, queue and quotas.

    Example: lockstep team create vision --member ana:admin --member ben --guaranteed gpu=16
    """
    queue: dict[str, Any] = {"parent": parent} if parent else {}
    for field, given in (("guaranteed", guaranteed), ("limit", limit)):
        if given:
            queue[field] = quantities.amounts(given)
    spec: dict[str, Any] = {
        "members": [member(text) for text in members or ()],
        "namespaces": namespace or [],
        "network": "Isolated" if isolated else "Open",
        "queue": queue,
    }
    if quota:
        spec["quota"] = dict(_pair(text) for text in quota)
    run(Target(kubeconfig, context), lambda session: _create(session, name, spec))


@app.command()
def add(
    name: Name,
    members: Annotated[list[str], typer.Argument(metavar="NAME[:ROLE]...")],
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Add members to a team, or change their role.

    Example: lockstep team add vision cleo:view
    """
    wanted = [member(text) for text in members]
    run(Target(kubeconfig, context), lambda session: _change(session, name, wanted, []))


@app.command()
def remove(
    name: Name,
    members: Annotated[list[str], typer.Argument(metavar="NAME...")],
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Take members out of a team.

    Example: lockstep team remove vision cleo
    """
    run(Target(kubeconfig, context), lambda session: _change(session, name, [], members))


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of teams.")],
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete teams: their rights, queues and quotas go; namespaces and data stay unless told.

    Example: lockstep team delete vision
    """
    wanted = [kinds.Reference("team", name, TEAMS) for name in names]
    run(Target(kubeconfig, context), lambda session: delete_all(session, wanted, 60.0))


def _pair(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not (name and equals and amount):
        raise BadInput(f"--quota {text}: is not RESOURCE=AMOUNT; limits.memory=64Gi, pods=100")
    return name, amount


async def _create(session: Session, name: str, spec: dict[str, Any]) -> None:
    try:
        await session.client.create(TEAMS, {"metadata": {"name": name}, "spec": spec})
    except AlreadyExists:
        raise CommandFailed(
            f"team {name} is there already", hint=f"lockstep team add {name} NAME:ROLE"
        ) from None
    print(f"team/{name} created")


async def _change(
    session: Session, name: str, added: list[dict[str, str]], gone: list[str]
) -> None:
    try:
        team = await session.client.get(TEAMS, name)
    except NotFound:
        raise CommandFailed(f"there is no team {name}", hint="lockstep team list") from None
    there = [{"kind": m.kind, "name": m.name, "role": m.role} for m in team.spec.members]
    missing = [one for one in gone if one not in {m["name"] for m in there}]
    if missing:
        raise CommandFailed(f"{', '.join(missing)}: not in team {name}")
    renewed = {(m["kind"], m["name"]) for m in added}
    kept = [m for m in there if m["name"] not in gone and (m["kind"], m["name"]) not in renewed]
    # The version makes the server refuse a change that another one has overtaken.
    meta = {"resourceVersion": team.metadata.resource_version}
    await session.client.patch(
        TEAMS, name, {"metadata": meta, "spec": {"members": [*kept, *added]}}
    )
    print(f"team/{name} has {len(kept) + len(added)} members")
