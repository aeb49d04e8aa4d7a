"""``snapshot``: what the scheduler goes by, as a file that ``simulate`` reads."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import BUDGETS, NODES, PODS, PRIORITY_CLASSES, Pod
from lockstep.api.gang import GANGS, Gang, GangGroup
from lockstep.api.names import (
    ARRIVAL_ANNOTATION,
    ELAPSED_ANNOTATION,
    GANG_GROUP_LABEL,
    GANG_LABEL,
    GROUP,
    SNAPSHOT_ANNOTATION,
    WAITED_ANNOTATION,
)
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.selectors import from_selector
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput
from lockstep.cli.options import Cluster
from lockstep.cli.output import note
from lockstep.compat.hypernodes import HYPERNODES
from lockstep.kube.errors import Forbidden, NotFound

app = App()


TAKEN: Final[tuple[Resource[Any], ...]] = (
    NODES,
    PRIORITY_CLASSES,
    TOPOLOGIES,
    NODE_POLICIES,
    QUEUES,
    TRAINING_JOBS,
    GANGS,
    PODS,
)
BESIDES: Final[tuple[Resource[Any], ...]] = (BUDGETS, HYPERNODES)
"""A snapshot is of use without them: not every user may list them, nor has every server them."""
ALL = "all"
"""The group of a gang that has none."""
OVER = ("Succeeded", "Failed")
KEPT_OF_CONTAINERS = ("name", "image", "resources", "ports", "restartPolicy")
"""Commands and environments stay behind: they may hold secrets, and place nothing."""


@app.command()
def snapshot(
    file: Annotated[Path | None, "FILE", "Where to write it; - for stdout."] = None,
    *,
    target: Cluster,
) -> None:
    """Write down nodes, queues, jobs and pods as the scheduler sees them now.

    The file is JSON and holds no commands, environments or secrets. `lockstep simulate` takes it
    as --cluster and as --jobs.

    \b
    Examples:
      lockstep snapshot cluster.json
      lockstep simulate --cluster cluster.json --jobs cluster.json
    """
    items = run(replace(target, all_namespaces=True), take)
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}) + b"\n"
    if file is None or str(file) == "-":
        typer.echo(text.decode(), nl=False)
        return
    try:
        file.write_bytes(text)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", "name another file") from None
    kinds = Counter(item["kind"] for item in items)
    note(f"{file}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()))


async def take(session: Session) -> list[Json]:
    """Return what the scheduler goes by, as the objects of a snapshot."""
    now = time.time()
    listings = {res: (await session.client.list(res)).items for res in TAKEN}
    for res in BESIDES:
        with contextlib.suppress(NotFound):  # such as HyperNodes where there is no Volcano
            try:
                listings[res] = (await session.client.list(res)).items
            except Forbidden:
                note(f"warning: you may not list {res.plural}: what follows leaves them out")
    listings[GANGS] = [with_templates(gang, listings[PODS]) for gang in listings[GANGS]]
    return [
        object_of(res, view, now)
        for res, views in listings.items()
        for view in views
        if getattr(getattr(view, "status", None), "phase", "") not in OVER
    ]


def with_templates(gang: Gang, pods: Sequence[Pod]) -> Gang:
    """Return a gang whose groups say what their pods are like, as its present pods show it."""
    meta, spec = gang.metadata, gang.spec
    own = [
        pod
        for pod in pods
        if pod.metadata.namespace == meta.namespace
        and pod.metadata.labels.get(GANG_LABEL) == meta.name
    ]
    groups = spec.groups or [GangGroup(name=ALL, min=spec.min_member or 1, desired=len(own) or 1)]
    shown = [
        structs.replace(group, template=group.template or _template(group, own, len(groups)))
        for group in groups
    ]
    return structs.replace(gang, spec=structs.replace(spec, groups=shown, min_member=None))


def _template(group: GangGroup, pods: Sequence[Pod], groups: int) -> Json:
    """Return the template of a group: what one of its pods is like, or an empty one."""
    for pod in pods:
        labels = pod.metadata.labels
        named = labels.get(GANG_GROUP_LABEL, "") == group.name
        chosen = group.selector is not None and from_selector(group.selector).matches(labels)
        if groups == 1 or named or chosen:
            spec = structs.replace(pod.spec, node_name="", hostname="", subdomain="")
            return {"metadata": {"labels": labels}, "spec": to_builtins(spec)}
    return {"spec": {"containers": []}}


def object_of(res: Resource[Any], view: Any, now: float) -> Json:
    """Return an object of a snapshot taken at the Unix time *now*."""
    obj: Json = to_builtins(view)
    obj |= {"apiVersion": res.api_version, "kind": res.kind}
    meta = obj["metadata"]
    annotations = {k: v for k, v in meta.get("annotations", {}).items() if GROUP in k}
    annotations.pop(ARRIVAL_ANNOTATION, None)  # it is there already
    if res is NODES:
        # Whole seconds, up: nothing in the snapshot is as late as it.
        annotations[SNAPSHOT_ANNOTATION] = timestamp.show(ceil(now))
    started = _started(view)
    if started is not None:
        annotations[ELAPSED_ANNOTATION] = f"{max(0.0, now - timestamp.parse(started)):.0f}"
    waiting = getattr(getattr(view, "status", None), "waiting_since", None)
    if waiting is not None:
        annotations[WAITED_ANNOTATION] = f"{max(0.0, now - timestamp.parse(waiting)):.0f}"
    meta["annotations"] = annotations
    for role in obj.get("spec", {}).get("roles", []):
        role["template"] = _lean(role["template"])
    return obj


def _started(view: Any) -> str | None:
    status = getattr(view, "status", None)
    started: str | None = getattr(status, "start_time", None) or getattr(status, "placed_at", None)
    return started


def _lean(template: Json) -> Json:
    """Return a pod template with what places a pod, and nothing else of its containers."""
    spec = dict(template.get("spec") or {})
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [
                {key: one[key] for key in KEPT_OF_CONTAINERS if key in one} for one in spec[field]
            ]
    spec.pop("volumes", None)
    return {**template, "spec": spec}
