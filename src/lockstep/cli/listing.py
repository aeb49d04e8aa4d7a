"""``list``, ``get`` and ``describe``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from lockstep.api.core import EVENTS, NODES, PODS, Event
from lockstep.api.gang import GANGS
from lockstep.api.job_record import JobRecord, closed
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GANG_LABEL, JOB_LABEL
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.selectors import parse_labels
from lockstep.api.team import TEAMS
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json, to_builtins
from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.choice import Choice
from lockstep.cli.completion import OneNamed, objects
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import usage
from lockstep.cli.gone_jobs import job_or_record, was_deleted
from lockstep.cli.naming import resolve_all, resolve_one
from lockstep.cli.options import Everywhere, Namespaced, Output, Watch
from lockstep.cli.output import (
    Format,
    encode,
    note,
    print_lines,
    print_objects,
    print_table,
    structured,
)
from lockstep.cli.target import Target
from lockstep.cli.views import catalog
from lockstep.kube.errors import Forbidden
from lockstep.kube.named import in_all_or_own, readable
from lockstep.kube.silent_parts import CARRY, warnings
from lockstep.kube.usage import recorded_jobs

CARRIED: Final[tuple[Resource[Any], ...]] = (TRAINING_JOBS, GANGS)
"""Kinds that stay as they are while parts of Lockstep do not run."""
OWN_ONES: Final[tuple[Resource[Any], ...]] = (QUEUES, TEAMS)
"""Kinds of which members of teams read their own by name."""
app = App()

_SECONDS = len("2006-01-02T15:04:05")


@app.command("list")
def list_(
    kind: Annotated[str, "[KIND]", "jobs, gangs, queues, nodes, pods, events, ..."] = "jobs",
    *,
    choice: Choice,
    output: Output = Format.TABLE,
    watch: Watch = False,
    deleted: Annotated[
        bool, "--deleted", "Jobs of the namespace that were deleted, as they are on record."
    ] = False,
    target: Everywhere,
) -> None:
    """List objects: jobs, when no KIND is given.

    \b
    Examples:
      lockstep list
      lockstep list --phase Failed,Restarting --sort age
      lockstep list gangs -A -o wide
      lockstep list pods -l lockstep.dev/job=digits --watch
      lockstep list --deleted --sort age
    """
    with usage("KIND"):
        short, res = kinds.resource(kind)
    with usage("--deleted"):
        if deleted and (res is not TRAINING_JOBS or watch or target.all_namespaces):
            raise ValueError("lists jobs of one namespace, without --watch")
    if deleted:
        run(target, lambda session: _list_deleted(session, choice, output))
        return
    _list(target, short, res, choice, output, watch=watch)


def _list(
    target: Target, short: str, res: Resource[Any], choice: Choice, output: Format, *, watch: bool
) -> None:
    with usage("--watch"):
        if watch and output not in (Format.TABLE, Format.WIDE):
            raise ValueError("prints rows of a table: table or wide")
        if watch and not choice.plain():
            raise ValueError("takes --selector alone: what changes comes in the order of time")
    if watch:
        from lockstep.cli.watching import watch_table

        run(target, lambda session: watch_table(session, res, choice.selector, output))
        return
    run(target, lambda session: list_all(session, short, res, choice, output))


@app.command()
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND] [NAME...]",
            help="A kind, or NAMEs of jobs, or KIND/NAME.",
            autocompletion=objects,
        ),
    ] = None,
    *,
    choice: Choice,
    output: Output = Format.TABLE,
    watch: Watch = False,
    target: Everywhere,
) -> None:
    """Get objects by name, or all of a kind as `list` does.

    \b
    Examples:
      lockstep get digits
      lockstep get pods
      lockstep get gang/g1 queue/research -o yaml
      lockstep get pod digits-worker-0 digits-worker-1
    """
    with usage("NAME"):
        wanted = kinds.wanted(names or [])
        if not isinstance(wanted, tuple) and (watch or not choice.plain() or choice.selector):
            raise ValueError("objects by name are not chosen among; name a kind alone")
    if isinstance(wanted, tuple):
        _list(target, *wanted, choice, output, watch=watch)
    else:
        run(target, lambda session: get_all(session, wanted, output))


@app.command()
def describe(name: OneNamed, *, output: Output = Format.TABLE, target: Namespaced) -> None:
    """Show everything worth knowing about one object; of a deleted job, what is on record.

    With -o json or yaml: the object with its gang, pods and events.

    \b
    Examples:
      lockstep describe digits
      lockstep describe node/sim-0
      lockstep describe digits -o json
    """
    with usage("NAME"):
        wanted = kinds.single(name)
    if structured(output):
        print(encode(run(target, lambda s: _whole_page(s, wanted)), output), end="")
        return
    print_lines(run(target, lambda s: page(s, wanted)))


async def list_all(
    session: Session, short: str, res: Resource[Any], choice: Choice, output: Format
) -> None:
    """Print the objects of one kind."""
    if structured(output) or output is Format.NAME:
        items = await _raw_list(session, short, res, choice.selector)
        _print_objects(choice.of_objects(items), short, output, single=False)
        return
    view = catalog.view(res)
    silent = asyncio.create_task(warnings(session.client, CARRY)) if res in CARRIED else None
    found = await _found(session, res, view, choice.selector)
    where = "" if session.all_namespaces or not res.namespaced else f" in {session.namespace}"
    print_table(
        choice.of_rows(view.build(found, time.time())),
        output,
        empty=f"no {kinds.plural(short)}{where}",
        namespaces=session.all_namespaces,
    )
    for warning in await silent if silent is not None else ():
        note(f"warning: {warning}")


async def _list_deleted(session: Session, choice: Choice, output: Format) -> None:
    """Print the jobs that are on record and no longer there."""
    found = await recorded_jobs(session.client, session.namespace)
    match = parse_labels(choice.selector)
    jobs = [closed(one) for one in found if one.deleted and match.matches(one.job.metadata.labels)]
    if structured(output) or output is Format.NAME:
        items = choice.of_objects([to_builtins(one) for one in jobs])
        _print_objects(items, "job", output, single=False)
        return
    table = catalog.view(TRAINING_JOBS).build({"TrainingJob": jobs, "Gang": []}, time.time())
    empty = f"no deleted jobs of {session.namespace} are on record"
    print_table(choice.of_rows(table), output, empty=empty)


async def _raw_list(session: Session, short: str, res: Resource[Any], selector: str) -> list[Json]:
    params = {"labelSelector": selector} if selector else None
    try:
        raw = await session.client.get_raw(res.path(session.scope(res)), params)
    except Forbidden:
        if res not in OWN_ONES:
            raise
        found = await _selected(session, res, selector)
        return [
            await _raw(session, kinds.Reference(short, one.metadata.name, res)) for one in found
        ]
    return [_typed(item, res) for item in msgspec.json.decode(raw)["items"]]


async def _selected(session: Session, res: Resource[Any], selector: str) -> Sequence[Any]:
    """Return the objects of a kind; of queues and teams those that the user may read by name."""
    try:
        found = await session.client.list(res, session.scope(res), label_selector=selector)
    except Forbidden:
        if res not in OWN_ONES:
            raise
        own, match = await readable(session.client, res), parse_labels(selector)
        return [one for one in own if match.matches(one.metadata.labels)]
    return found.items


async def _found(
    session: Session, res: Resource[Any], view: catalog.View, selector: str
) -> dict[str, Sequence[Any]]:
    found, *others = await asyncio.gather(
        _selected(session, res, selector),
        *(_whole(session, res, more) for more in view.more),
    )
    listings = {more.kind: got.items for more, got in zip(view.more, others, strict=True)}
    return {res.kind: found, **listings}


async def _whole(session: Session, res: Resource[Any], more: Resource[Any]) -> Any:
    # What a cluster-scoped object draws on, such as a node's pods, lies in every namespace.
    return await session.client.list(more, session.scope(more) if res.namespaced else None)


async def get_all(session: Session, wanted: Sequence[kinds.Reference], output: Format) -> None:
    """Print the objects by name."""
    wanted = await resolve_all(session, wanted)
    if output is Format.TABLE or output is Format.WIDE:
        for res, names in _by_resource(wanted):
            view = catalog.view(res)
            objects = [await session.client.get(res, n, session.home(res)) for n in names]
            found = {more.kind: (await _whole(session, res, more)).items for more in view.more}
            print_table(view.build({**found, res.kind: objects}, time.time()), output)
        return
    items = [await _raw(session, ref) for ref in wanted]
    if output is Format.NAME:
        print_lines(str(ref) for ref in wanted)
    else:
        print_objects(items, output, single=len(items) == 1)


def _by_resource(wanted: Sequence[kinds.Reference]) -> list[tuple[Resource[Any], list[str]]]:
    grouped: dict[str, tuple[Resource[Any], list[str]]] = {}
    for ref in wanted:
        grouped.setdefault(ref.kind, (ref.resource, []))[1].append(ref.name)
    return list(grouped.values())


async def _raw(session: Session, ref: kinds.Reference) -> Json:
    res = ref.resource
    got = msgspec.json.decode(await session.client.get_raw(res.path(session.home(res), ref.name)))
    return _without_managed_fields(got)


def _typed(item: Json, res: Resource[Any]) -> Json:
    # Items of a list leave out what the list says once.
    return _without_managed_fields({"apiVersion": res.api_version, "kind": res.kind, **item})


def _without_managed_fields(obj: Json) -> Json:
    obj.get("metadata", {}).pop("managedFields", None)
    return obj


def _print_objects(items: list[Json], short: str, output: Format, *, single: bool) -> None:
    if output is Format.NAME:
        print_lines(f"{short}/{item['metadata']['name']}" for item in items)
        return
    print_objects(items, output, single=single)


async def page(session: Session, ref: kinds.Reference) -> list[str]:
    """Return everything worth knowing about one object, as lines."""
    from lockstep.cli.views import describe as pages

    ref = await resolve_one(session, ref)
    client, res = session.client, ref.resource
    namespace = session.home(res)
    now = time.time()
    if res is TRAINING_JOBS:
        found = await job_or_record(session, ref.name)
        if isinstance(found, JobRecord):
            lines = pages.describe_job(closed(found), None, [], [], now)
            return [f"{was_deleted(found)}; this is its record", "", *lines]
    obj = await client.get(res, ref.name, namespace)
    events = await _events(session, ref, obj.metadata, uid=obj.metadata.uid)
    if res is TRAINING_JOBS:
        gang = await session.find(GANGS, ref.name)
        events += await _events(session, kinds.Reference("gang", ref.name, GANGS), obj.metadata)
        pods = await client.list(PODS, namespace, label_selector=f"{JOB_LABEL}={ref.name}")
        return pages.describe_job(obj, gang, pods.items, events, now)
    if res is GANGS:
        pods = await client.list(PODS, namespace, label_selector=f"{GANG_LABEL}={ref.name}")
        return pages.describe_gang(obj, pods.items, events, now)
    if res is QUEUES:
        gangs = await in_all_or_own(client, GANGS, session.namespace)
        return pages.describe_queue(obj, [g for g in gangs if g.spec.queue == ref.name], now)
    if res is NODES:
        pods = await client.list(PODS, field_selector=f"spec.nodeName={ref.name}")
        return pages.describe_node(obj, pods.items, events, now)
    if res is PODS:
        return pages.describe_pod(obj, events, now)
    shown = pages.describe_any(await _raw(session, ref), events, now)
    if res is NODE_POLICIES:
        shown += pages.policy_nodes(obj, (await client.list(NODES)).items)
    return shown


async def _whole_page(session: Session, ref: kinds.Reference) -> Json:
    """Return the object and what belongs to it, as plain trees."""
    ref = await resolve_one(session, ref)
    client, namespace = session.client, session.home(ref.resource)
    if ref.kind == "job":
        kept = await job_or_record(session, ref.name)
        if isinstance(kept, JobRecord):
            gone: Json = {"object": to_builtins(closed(kept)), "deleted": kept.deleted}
            return {**gone, "gang": None, "pods": [], "events": []}
    found: Json = {"object": await _raw(session, ref)}
    label = {"job": JOB_LABEL, "gang": GANG_LABEL}.get(ref.kind)
    if label is not None:
        gang = await session.find(GANGS, ref.name)
        pods = await client.list(PODS, namespace, label_selector=f"{label}={ref.name}")
        found["gang"] = to_builtins(gang) if gang is not None else None
        found["pods"] = [to_builtins(pod) for pod in pods.items]
    meta = (await client.get(ref.resource, ref.name, namespace)).metadata
    events = await _events(session, ref, meta, uid=meta.uid)
    found["events"] = [to_builtins(event) for event in events]
    return found


async def _events(
    session: Session, ref: kinds.Reference, since: ObjectMeta, uid: str = ""
) -> list[Event]:
    """Return what happened to *ref* since an object was created: not to one of its name before."""
    from lockstep.cli.views.pods import last_seen

    about = f"involvedObject.name={ref.name},involvedObject.kind={ref.resource.kind}"
    namespace = session.namespace if ref.resource.namespaced else None
    try:
        found = (await session.client.list(EVENTS, namespace, field_selector=about)).items
    except Forbidden:
        if ref.resource not in OWN_ONES:
            raise
        return []
    created = (since.creation_timestamp or "")[:_SECONDS]
    return [
        event
        for event in found
        if last_seen(event)[:_SECONDS] >= created
        and (not uid or event.involved_object.uid in ("", uid))
    ]
