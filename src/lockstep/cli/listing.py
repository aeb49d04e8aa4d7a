"""``list``, ``get`` and ``describe``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer

from lockstep.api.core import EVENTS, NODES, PODS, Event
from lockstep.api.gang import GANGS, Gang
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GANG_LABEL, JOB_LABEL
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import to_builtins
from lockstep.cli import kinds
from lockstep.cli.choice import Choice
from lockstep.cli.completion import objects
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.grouped import grouped
from lockstep.cli.options import (
    AllNamespaces,
    Context,
    Kubeconfig,
    Namespace,
    OneNamed,
    Output,
    Watch,
)
from lockstep.cli.output import Format, encode, print_lines, print_objects, print_table, structured
from lockstep.cli.usage import usage
from lockstep.cli.views import catalog
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

Json = dict[str, Any]
_SECONDS = len("2006-01-02T15:04:05")


@app.command("list")
@grouped
def list_(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="jobs, gangs, queues, nodes, pods, events, ...")
    ] = "jobs",
    *,
    choice: Choice,
    output: Output = Format.TABLE,
    watch: Watch = False,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List objects: jobs, when no KIND is given.

    \b
    Examples:
      lockstep list
      lockstep list --phase Failed,Restarting --sort age
      lockstep list gangs -A -o wide
      lockstep list pods -l lockstep.dev/job=digits --watch
    """
    with usage("KIND"):
        short, res = kinds.resource(kind)
    target = Target(kubeconfig, context, namespace, all_namespaces)
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
@grouped
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
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
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
    target = Target(kubeconfig, context, namespace, all_namespaces)
    if isinstance(wanted, tuple):
        _list(target, *wanted, choice, output, watch=watch)
    else:
        run(target, lambda session: get_all(session, wanted, output))


@app.command()
def describe(
    name: OneNamed,
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show everything worth knowing about one object.

    With -o json or yaml: the object with its gang, pods and events.

    \b
    Examples:
      lockstep describe digits
      lockstep describe node/sim-0
      lockstep describe digits -o json
    """
    with usage("NAME"):
        wanted = kinds.single(name)
    target = Target(kubeconfig, context, namespace)
    if structured(output):
        print(encode(run(target, lambda s: _whole_page(s, wanted)), output), end="")
        return
    print_lines(run(target, lambda s: page(s, wanted)))


async def list_all(
    session: Session, short: str, res: Resource[Any], choice: Choice, output: Format
) -> None:
    """Print the objects of one kind."""
    if structured(output) or output is Format.NAME:
        raw = await session.client.get_raw(
            res.path(session.scope(res)),
            {"labelSelector": choice.selector} if choice.selector else None,
        )
        items = [_typed(item, res) for item in msgspec.json.decode(raw)["items"]]
        _print_objects(choice.of_objects(items), short, output, single=False)
        return
    view = catalog.view(res)
    found = await _found(session, res, view, choice.selector)
    where = "" if session.all_namespaces or not res.namespaced else f" in {session.namespace}"
    print_table(
        choice.of_rows(view.build(found, time.time())),
        output,
        empty=f"no {kinds.plural(short)}{where}",
        namespaces=session.all_namespaces,
    )


async def _found(
    session: Session, res: Resource[Any], view: catalog.View, selector: str
) -> dict[str, Sequence[Any]]:
    listings = await asyncio.gather(
        session.client.list(res, session.scope(res), label_selector=selector),
        *(_whole(session, res, more) for more in view.more),
    )
    kinds_ = (res.kind, *(more.kind for more in view.more))
    return {kind: got.items for kind, got in zip(kinds_, listings, strict=True)}


async def _whole(session: Session, res: Resource[Any], more: Resource[Any]) -> Any:
    # What a cluster-scoped object draws on, such as a node's pods, lies in every namespace.
    return await session.client.list(more, session.scope(more) if res.namespaced else None)


async def get_all(session: Session, wanted: Sequence[kinds.Reference], output: Format) -> None:
    """Print the objects by name."""
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

    client, res = session.client, ref.resource
    namespace = session.home(res)
    obj = await client.get(res, ref.name, namespace)
    now = time.time()
    events = await _events(session, ref, obj.metadata, uid=obj.metadata.uid)
    if res is TRAINING_JOBS:
        gang = await find_gang(session, ref.name)
        events += await _events(session, kinds.Reference("gang", ref.name, GANGS), obj.metadata)
        pods = await client.list(PODS, namespace, label_selector=f"{JOB_LABEL}={ref.name}")
        return pages.describe_job(obj, gang, pods.items, events, now)
    if res is GANGS:
        pods = await client.list(PODS, namespace, label_selector=f"{GANG_LABEL}={ref.name}")
        return pages.describe_gang(obj, pods.items, events, now)
    if res is QUEUES:
        gangs = (await client.list(GANGS)).items
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
    client, namespace = session.client, session.home(ref.resource)
    found: Json = {"object": await _raw(session, ref)}
    label = {"job": JOB_LABEL, "gang": GANG_LABEL}.get(ref.kind)
    if label is not None:
        gang = await find_gang(session, ref.name)
        pods = await client.list(PODS, namespace, label_selector=f"{label}={ref.name}")
        found["gang"] = to_builtins(gang) if gang is not None else None
        found["pods"] = [to_builtins(pod) for pod in pods.items]
    meta = (await client.get(ref.resource, ref.name, namespace)).metadata
    events = await _events(session, ref, meta, uid=meta.uid)
    found["events"] = [to_builtins(event) for event in events]
    return found


async def find_gang(session: Session, name: str) -> Gang | None:
    """Return the gang called *name*, if there is one."""
    try:
        return await session.client.get(GANGS, name, session.namespace)
    except NotFound:
        return None


async def _events(
    session: Session, ref: kinds.Reference, since: ObjectMeta, uid: str = ""
) -> list[Event]:
    """Return what happened to *ref* since an object was created: not to one of its name before."""
    from lockstep.cli.views.pods import last_seen

    about = f"involvedObject.name={ref.name},involvedObject.kind={ref.resource.kind}"
    namespace = session.namespace if ref.resource.namespaced else None
    found = (await session.client.list(EVENTS, namespace, field_selector=about)).items
    created = (since.creation_timestamp or "")[:_SECONDS]
    return [
        event
        for event in found
        if last_seen(event)[:_SECONDS] >= created
        and (not uid or event.involved_object.uid in ("", uid))
    ]
