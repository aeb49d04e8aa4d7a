"""``lockstep team``: list, create, change and delete teams."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import asdict
from typing import Annotated, Any

from lockstep.api.team import TEAMS
from lockstep.cli import kinds, quantities, team_check
from lockstep.cli.app import App
from lockstep.cli.choice import Choice
from lockstep.cli.connect import OfCluster, Session, run
from lockstep.cli.deletion import delete_all
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.listing import list_all
from lockstep.cli.options import Cluster, Output
from lockstep.cli.output import Format, encode, print_table, structured
from lockstep.cli.team_check import Found
from lockstep.cli.views.table import Column, table
from lockstep.kube.errors import AlreadyExists

app = App("Teams: rights, queue and quotas from one object.")

Name = Annotated[str, "Name of the team."]
Members = Annotated[
    list[str] | None,
    "--member",
    "NAME[:ROLE]",
    "A user and what they may do: view, edit (default) or admin; may be repeated. "
    "group:NAME is a group, sa:NAMESPACE/NAME a service account.",
]
Amounts = Annotated[list[str] | None, "RESOURCE=AMOUNT"]
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
async def list_(session: OfCluster, *, output: Output = Format.TABLE) -> None:
    """List the teams.

    Example: lockstep team list
    """
    await list_all(session, "team", TEAMS, Choice(), output)


@app.command()
async def create(
    session: OfCluster,
    name: Name,
    *,
    members: Members = None,
    namespace: Annotated[
        list[str] | None, "--namespace", "A namespace of the team; its own name by default."
    ] = None,
    guaranteed: Amounts = None,
    limit: Amounts = None,
    parent: Annotated[str | None, "Queue that the team's is part of."] = None,
    quota: Amounts = None,
    isolated: Annotated[bool, "--isolated", "Keep pods of other teams from connecting."] = False,
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
    try:
        await session.client.create(TEAMS, {"metadata": {"name": name}, "spec": spec})
    except AlreadyExists:
        raise CommandFailed(
            f"team {name} is there already", hint=f"lockstep team add {name} NAME:ROLE"
        ) from None
    print(f"team/{name} created")


@app.command()
async def add(
    session: OfCluster, name: Name, members: Annotated[list[str], "NAME[:ROLE]..."]
) -> None:
    """Add members to a team, or change their role.

    Example: lockstep team add vision cleo:view
    """
    wanted = [member(text) for text in members]
    await _change(session, name, wanted, [])


@app.command()
async def remove(session: OfCluster, name: Name, members: Annotated[list[str], "NAME..."]) -> None:
    """Take members out of a team.

    Example: lockstep team remove vision cleo
    """
    await _change(session, name, [], members)


@app.command()
def check(
    name: Name,
    *,
    traffic: Annotated[
        str | None,
        "Try the network, too: three pods of this image, which has python3, run for a moment.",
    ] = None,
    output: Output = Format.TABLE,
    target: Cluster,
) -> None:
    """Try each border of a team with a throwaway account, and say what held.

    The account is an admin of the team. It reaches for a throwaway neighbour: its objects, pods,
    secrets, queue and cost; and for what isolates the team. All writes are dry runs, but the pods
    of --traffic. Account and neighbour are gone at the end, also after Ctrl-C; the next check
    deletes what a killed one left.
    The exit status is 1 where a border is OPEN.

    \b
    Examples:
      lockstep team check vision
      lockstep team check vision -o wide
      lockstep team check vision --traffic python:3.12
      lockstep team check vision -o json
    """
    found = run(target, lambda session: _check(session, name, traffic))
    if structured(output):
        print(encode([asdict(one) for one in found], output), end="")
    else:
        heads = ("Border", "Tried", "Result", Column("Why", wide=True, text=True))
        rows = ((one.border, one.tried, one.result, one.why) for one in found)
        print_table(table(heads, rows), output)
    if count := sum(one.result == "OPEN" for one in found):
        raise CommandFailed(
            f"team {name}: {count} {'border is' if count == 1 else 'borders are'} OPEN",
            f"`lockstep team check {name} -o wide` says why; docs/teams.md names what holds each",
        )


@app.command()
async def delete(
    session: OfCluster, names: Annotated[list[str], "NAME...", "Names of teams."]
) -> None:
    """Delete teams: their rights, queues and quotas go; namespaces and data stay unless told.

    Example: lockstep team delete vision
    """
    wanted = [kinds.Reference("team", name, TEAMS) for name in names]
    await delete_all(session, wanted, 60.0)


def _pair(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not (name and equals and amount):
        raise BadInput(f"--quota {text}: is not RESOURCE=AMOUNT; limits.memory=64Gi, pods=100")
    return name, amount


async def _check(session: Session, name: str, image: str | None) -> list[Found]:
    team = await session.get(TEAMS, name, "team", "lockstep team list")
    task = asyncio.ensure_future(team_check.check(session.client, team, image))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise CommandFailed("the check was stopped; what it had made is gone") from None


async def _change(
    session: Session, name: str, added: list[dict[str, str]], gone: list[str]
) -> None:
    team = await session.get(TEAMS, name, "team", "lockstep team list")
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
