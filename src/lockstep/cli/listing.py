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
from lockstep.api.names import GANG_LABEL, JOB_LABEL
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.options import (
    AllNamespaces,
    Context,
    Kubeconfig,
    Named,
    Namespace,
    Output,
    SeveralNamed,
    Watch,
)
from lockstep.cli.output import Format, print_lines, print_objects, print_table, structured
from lockstep.cli.usage import usage
from lockstep.cli.views import catalog
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

Json = dict[str, Any]


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="jobs, gangs, queues, nodes, pods, events, ...")
    ] = "jobs",
    *,
    output: Output = Format.TABLE,
    watch: Watch = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Only objects with these labels.")
    ] = "",
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List objects: jobs, when no KIND is given.

    \b
    Examples:
      lockstep list
      lockstep list gangs -A -o wide
      lockstep list pods -l lockstep.dev/job=digits --watch
    """
    with usage("KIND"):
        short, res = kinds.resource(kind)
    with usage("--watch"):
        if watch and output not in (Format.TABLE, Format.WIDE):
            raise ValueError("prints rows of a table: table or wide")
    target = Target(kubeconfig, context, namespace, all_namespaces)
    if watch:
        from lockstep.cli.watching import watch_table

        run(target, lambda session: watch_table(session, res, selector, output))
        return
    run(target, lambda session: list_all(session, short, res, selector, output))


@app.command()
def get(
    names: SeveralNamed,
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Get objects by name.

    \b
    Examples:
      lockstep get digits
      lockstep get gang/g1 queue/research -o yaml
    """
    with usage("NAME"):
        wanted = [kinds.reference(name) for name in names]
    run(Target(kubeconfig, context, namespace), lambda session: get_all(session, wanted, output))


@app.command()
def describe(
    name: Named,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show everything worth knowing about one object.

    \b
    Examples:
      lockstep describe digits
      lockstep describe node/sim-0
    """
    with usage("NAME"):
        wanted = kinds.reference(name)
    print_lines(run(Target(kubeconfig, context, namespace), lambda s: _describe(s, wanted)))


async def list_all(
    session: Session, short: str, res: Resource[Any], selector: str, output: Format
) -> None:
    """Print the objects of one kind."""
    if structured(output) or output is Format.NAME:
        raw = await session.client.get_raw(
            res.path(session.scope(res)), {"labelSelector": selector} if selector else None
        )
        items = [_typed(item, res) for item in msgspec.json.decode(raw)["items"]]
        _print_objects(items, short, output, single=False)
        return
    view = catalog.view(res)
    found = await _found(session, res, view, selector)
    where = "" if session.all_namespaces or not res.namespaced else f" in {session.namespace}"
    print_table(
        view.build(found, time.time()),
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


async def _describe(session: Session, ref: kinds.Reference) -> list[str]:
    from lockstep.cli.views import describe as pages

    client, res = session.client, ref.resource
    namespace = session.home(res)
    obj = await client.get(res, ref.name, namespace)
    now = time.time()
    events = await _events(session, ref)
    if res is TRAINING_JOBS:
        gang = await find_gang(session, ref.name)
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
    page = pages.describe_any(await _raw(session, ref), events, now)
    if res is NODE_POLICIES:
        page += pages.policy_nodes(obj, (await client.list(NODES)).items)
    return page


async def find_gang(session: Session, name: str) -> Gang | None:
    """Return the gang called *name*, if there is one."""
    try:
        return await session.client.get(GANGS, name, session.namespace)
    except NotFound:
        return None


async def _events(session: Session, ref: kinds.Reference) -> list[Event]:
    about = f"involvedObject.name={ref.name},involvedObject.kind={ref.resource.kind}"
    namespace = session.namespace if ref.resource.namespaced else None
    return (await session.client.list(EVENTS, namespace, field_selector=about)).items
