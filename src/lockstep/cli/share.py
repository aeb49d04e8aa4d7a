"""``share``: another size for the share of a GPU that a running pod has."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from lockstep.api import quantity
from lockstep.api.core import PODS, Pod
from lockstep.api.names import GPU_RESIZE_ANNOTATION
from lockstep.api.share_sizes import (
    BYTES_FROM,
    GRANTED,
    HELD,
    MIB,
    Resize,
    Size,
    answer,
    held,
    in_words,
    words_of,
)
from lockstep.cli.app import App
from lockstep.cli.completion import of
from lockstep.cli.connect import InNamespace, Session
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.output import note
from lockstep.kube.errors import Conflict

app = App()

LOOK_AGAIN = 0.2
PATIENCE = 60.0
"""Seconds for which the scheduler's and the node's answers are waited for."""


@app.command()
async def share(
    session: InNamespace,
    pod: Annotated[str, "POD", "Name of the pod.", of("pod")],
    *,
    memory: Annotated[str, "Memory of each card: 2Gi, or MiB as a number."] = "",
    compute: Annotated[int | None, range(1, 101), "Hundredths of each card's time."] = None,
    container: Annotated[str, "--container", "-c", "Which one, where several have shares."] = "",
) -> None:
    """Make a running pod's share of its GPUs larger or smaller.

    Larger only as far as its cards and its queue have room; smaller not below what it uses.
    Without --memory and --compute its present size is shown.

    \b
    Examples:
      lockstep share trainer-0
      lockstep share trainer-0 --memory 4Gi --compute 50
    """
    with usage("--memory"):
        wanted = _mib(memory) if memory else 0
    await _share(session, pod, container, wanted, compute or 0)


def _mib(text: str) -> int:
    amount = quantity.to_int(text)
    if amount <= 0:
        raise ValueError(f"{text!r} is no memory to have, such as 2Gi or 2048 (MiB)")
    return -(-amount // MIB) if amount >= BYTES_FROM else amount


async def _share(session: Session, name: str, container: str, memory: int, compute: int) -> None:
    pod = await session.client.get(PODS, name, session.namespace)
    chosen, now = _chosen(pod, container)
    if not memory and not compute:
        print(f"pod/{name} {chosen}: {in_words(now)} of each of its cards")
        return
    if not pod.spec.node_name or pod.status.phase in ("Succeeded", "Failed"):
        raise CommandFailed(
            f"pod {name} does not run ({pod.status.phase})",
            "change lockstep.dev/gpu-memory and gpu-compute in its manifest instead",
        )
    _check_none_waits(pod)
    wish = Resize(chosen, memory, compute, datetime.now(UTC).isoformat())
    if wish.of(now) == now:
        print(f"pod/{name} {chosen} has that already: {in_words(now)}")
        return
    text = msgspec.json.encode(wish).decode()
    meta = {
        "annotations": {GPU_RESIZE_ANNOTATION: text},
        "resourceVersion": pod.metadata.resource_version,
    }
    try:
        await session.client.patch(PODS, name, {"metadata": meta}, session.namespace)
    except Conflict as error:
        raise CommandFailed(f"pod {name} changed meanwhile", "try again") from error
    await _answer(session, name, pod.metadata.uid)
    print(f"pod/{name} {chosen}: {in_words(wish.of(now))} (before: {in_words(now)})")


def _chosen(pod: Pod, container: str) -> tuple[str, Size]:
    """Return the container that is meant, and the size of its share."""
    seen, name = pod.status.container_statuses, pod.metadata.name
    sizes = {one.name: held(one.name, one.resources, seen) for one in pod.spec.containers}
    shared = {one: size for one, size in sizes.items() if size != Size()}
    if not shared:
        raise CommandFailed(
            f"pod {name} has no share of a GPU", "give it lockstep.dev/gpu-memory in its limits"
        )
    if container and container not in shared:
        raise BadInput(
            f"pod {name} has no container {container!r} with a share",
            f"--container: those with one are {', '.join(shared)}",
        )
    if not container and len(shared) > 1:
        raise BadInput(
            f"several containers of pod {name} have shares", f"--container: {', '.join(shared)}"
        )
    chosen = container or next(iter(shared))
    return chosen, shared[chosen]


def _check_none_waits(pod: Pod) -> None:
    """Refuse a second wish while the first may still be granted: their sizes would mix."""
    annotations, conditions = pod.metadata.annotations, pod.status.conditions
    if not annotations.get(GPU_RESIZE_ANNOTATION):
        return
    granted, done = (answer(annotations, conditions, kind) for kind in (GRANTED, HELD))
    if done is None and (granted is None or granted.status == "True"):
        raise CommandFailed(
            f"another size of pod {pod.metadata.name}'s share is being decided on",
            f"wait, or take it back: kubectl annotate pod {pod.metadata.name} "
            f"{GPU_RESIZE_ANNOTATION}-",
        )


async def _answer(session: Session, name: str, uid: str) -> None:
    """Wait until the node holds the share to its new size.

    Raises:
        CommandFailed: when the scheduler or the node says no, or nothing.
    """
    end, told = time.monotonic() + PATIENCE, ""
    while time.monotonic() < end:
        pod = await session.client.get(PODS, name, session.namespace)
        if pod.metadata.uid != uid:
            raise CommandFailed(f"pod {name} is another one by now", "try again")
        annotations, conditions = pod.metadata.annotations, pod.status.conditions
        granted, done = (answer(annotations, conditions, kind) for kind in (GRANTED, HELD))
        for one in (granted, done):
            if one is not None and one.status == "False":
                raise CommandFailed(words_of(annotations, one), "lockstep top shares shows its use")
        if done is not None:
            return
        news = "waiting for the node" if granted else "waiting for the scheduler"
        if news != told and told:
            note(news)
        told = news
        await asyncio.sleep(LOOK_AGAIN)
    raise CommandFailed(
        f"no answer for {PATIENCE:g} s ({told}); the wish stands",
        f"kubectl describe pod {name} shows its conditions",
    )
