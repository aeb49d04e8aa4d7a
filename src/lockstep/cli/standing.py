"""``lockstep status``: is it up, where, which version, and what goes on there."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec

from lockstep import __version__
from lockstep.api.core import CRDS, NODES, PODS, Pod
from lockstep.api.names import SCHEMA_ANNOTATION, SYSTEM_NAMESPACE
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.options import Cluster
from lockstep.cli.output import Format, note, show
from lockstep.cli.views.nodes import status as node_status
from lockstep.kube.errors import Forbidden, NotFound

app = App()


@app.command()
def status(
    *,
    output: Annotated[Format, "--output", "-o", "table, json or yaml."] = (Format.TABLE),
    target: Cluster,
) -> None:
    """Show which server this is, its version, and how many nodes, jobs and queues there are.

    The exit code is 1 when no server answers.

    \b
    Examples:
      lockstep status
      lockstep status -o json
    """
    found = run(replace(target, all_namespaces=True), _status)
    show(found, _lines(found), output)


async def _status(session: Session) -> dict[str, Any]:
    client = session.client
    version, nodes, jobs, queues = await asyncio.gather(
        client.get_raw("/version"),
        client.list(NODES),
        client.list(TRAINING_JOBS),
        client.list(QUEUES),
    )
    ready = [q for q in queues.items if all(c.status != "False" for c in q.status.conditions)]
    return {
        "server": client.config.server,
        "serverVersion": msgspec.json.decode(version).get("gitVersion", "unknown"),
        "clientVersion": __version__,
        "nodes": dict(sorted(Counter(node_status(one) for one in nodes.items).items())),
        "jobs": dict(sorted(Counter(job.status.phase for job in jobs.items).items())),
        "queues": {"Ready": len(ready), "NotReady": len(queues.items) - len(ready)},
    }


def _lines(found: dict[str, Any]) -> list[str]:
    return [
        f"server  {found['server']}, version {found['serverVersion']}",
        f"client  version {found['clientVersion']}",
        *(f"{what:7} {_counts(found[what])}" for what in ("nodes", "jobs", "queues")),
    ]


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{number} {name}" for name, number in counts.items() if number]
    return ", ".join(shown) or "none"


KIND: Final = "trainingjobs.lockstep.dev"
"""The definition whose annotation says which version installed the kinds."""
PART_OF: Final = "app.kubernetes.io/part-of=lockstep"
SECONDS: Final = 5.0


@app.command()
def version(*, target: Cluster) -> None:
    """Print the versions of this client, of the API server, and of Lockstep's parts there.

    Example: lockstep version
    """
    print(f"client {__version__}", flush=True)
    try:
        lines = run(target, _ask)
    except TimeoutError:
        note(f"no server: none has answered within {SECONDS:g} s; --kubeconfig chooses another")
    except CommandFailed as failure:
        note(f"no server: {failure}")
    else:
        print("\n".join(lines))


async def _ask(session: Session) -> list[str]:
    async with asyncio.timeout(SECONDS):
        answer = json.loads(await session.client.get_raw("/version"))
        lines = [f"server {answer.get('gitVersion', 'unknown')} ({answer.get('platform', '')})"]
        try:
            kind = await session.client.get(CRDS, KIND)
            pods = await session.client.list(PODS, SYSTEM_NAMESPACE, label_selector=PART_OF)
        except NotFound:
            return [*lines, "kinds  none: run `lockstep cluster install` or `lockstep up`"]
        except Forbidden as refused:
            return [*lines, f"parts  unknown: {refused}"]
    schema = kind.metadata.annotations.get(SCHEMA_ANNOTATION, "")
    return [*lines, f"kinds  {schema.partition('+')[0] or 'unknown'}", *parts(pods.items)]


def parts(pods: Iterable[Pod]) -> list[str]:
    """Return a line for each part and version that pods run, ``scheduler 0.2.0 (2 pods)``."""
    labels = (pod.metadata.labels for pod in pods)
    found = Counter(
        (one.get("app.kubernetes.io/component", "part"), one.get("app.kubernetes.io/version", ""))
        for one in labels
    )
    return [
        f"{part} {which or 'unknown'} ({count} {'pod' if count == 1 else 'pods'})"
        for (part, which), count in sorted(found.items())
    ]
