"""Plans addresses for a job's pods, and writes them to the nodes where the agents act on them."""

from __future__ import annotations

from typing import Any

from lockstep.api.core import PODS
from lockstep.api.names import JOB_LABEL
from lockstep.api.wire import to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.devices.network import planning
from lockstep.kube.errors import NotFound


async def plan(session: Session, job: str, *, apply: bool) -> dict[str, Any]:
    """Return the plan for the pods of *job*; with *apply* it is written to their nodes.

    Raises:
        BadInput: when no plan is possible.
        CommandFailed: when the job has no pods on nodes.
    """
    selector = f"{JOB_LABEL}={job}"
    own = (await session.client.list(PODS, session.namespace, label_selector=selector)).items
    placed = sorted((p for p in own if p.spec.node_name), key=lambda p: p.metadata.name)
    if not placed:
        raise CommandFailed(f"no pod of the job {job!r} is on a node")
    try:
        found = await planning.plan(session.client, placed, apply=apply)
    except NotFound:
        raise BadInput("there is no Topology 'default'; its rails are what is planned") from None
    except ValueError as error:
        raise BadInput(str(error)) from None
    return {
        one.metadata.name: {
            "node": one.spec.node_name,
            "addresses": to_builtins(found.members[str(one.metadata.uid)]),
        }
        for one in placed
    }
