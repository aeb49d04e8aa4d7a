"""What ``team check --traffic`` tries: whether another team's pod connects to a pod of the team."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal

from lockstep.api.core import PODS, Pod
from lockstep.api.wire import Json
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound

Result = Literal["held", "OPEN", "not tried"]

PATIENCE: Final = 90.0
"""Seconds for which a pod is waited for."""
PORT: Final = 8899
_SERVES: Final = (
    f"import os, socket; s = socket.create_server((os.environ['AT'], {PORT}))\n"
    "while True: s.accept()[0].close()"
)
# One who is refused came through, but the other has not begun to listen.
_CONNECTS: Final = f"""import os, socket, time
for _ in range(60):
    try:
        raise SystemExit(socket.create_connection((os.environ['AT'], {PORT}), 5).close())
    except ConnectionRefusedError:
        time.sleep(0.5)
raise SystemExit(1)
"""
_ASKED: Final = {"cpu": "200m", "memory": "64Mi"}
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def judged(own: str, other: str) -> tuple[Result, str]:
    """Return what came of it by the phases of two pods that connect: the team's own, another's."""
    if own != "Succeeded":
        return "not tried", f"a pod of the team cannot connect either: it is {own or 'gone'}"
    if other not in _ENDED:
        return "not tried", f"the other team's pod does not end: it is {other or 'gone'}"
    return ("OPEN", "it connected") if other == "Succeeded" else ("held", "it did not connect")


async def traffic(
    client: Client, plain: Json, spaces: tuple[str, str], name: str
) -> tuple[Result, str]:
    """Let pods like *plain* connect to one of the first of *spaces*: from there, and the second.

    The three pods are called *name* and are gone afterwards.
    """
    own, other = spaces
    made = [(own, f"{name}-serves"), (own, f"{name}-own"), (other, f"{name}-other")]
    try:
        address: Json = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        await _start(client, plain, made[0], _SERVES, address)
        server = await _until(client, made[0], lambda pod: pod.status.phase == "Running")
        if server is None or server.status.phase != "Running":
            phase = server.status.phase if server is not None else "gone"
            return "not tried", f"the pod to connect to does not run: it is {phase}"
        at = {"value": server.status.pod_ip}
        phases = []
        for pod in made[1:]:
            await _start(client, plain, pod, _CONNECTS, at)
            found = await _until(client, pod, lambda one: one.status.phase in _ENDED)
            phases.append(found.status.phase if found is not None else "")
        return judged(*phases)
    except ApiError as error:
        return "not tried", str(error)
    finally:
        await asyncio.shield(asyncio.ensure_future(_remove(client, made)))


async def _start(
    client: Client, plain: Json, pod: tuple[str, str], program: str, address: Json
) -> None:
    (container,) = plain["spec"]["containers"]
    runs = {
        "command": ["python3", "-c", program],
        "env": [{"name": "AT", **address}],
        "resources": {"requests": _ASKED, "limits": _ASKED},
    }
    spec = {**plain["spec"], "restartPolicy": "Never", "containers": [{**container, **runs}]}
    await client.create(PODS, {"metadata": {"name": pod[1]}, "spec": spec}, pod[0])


async def _until(client: Client, pod: tuple[str, str], done: Callable[[Pod], bool]) -> Pod | None:
    """Return a pod once it is *done* or has ended; as it is when patience is over."""
    end = time.monotonic() + PATIENCE
    found: Pod | None = None
    while time.monotonic() < end:
        found = await client.get(PODS, pod[1], pod[0])
        if done(found) or found.status.phase in _ENDED:
            break
        await asyncio.sleep(0.3)
    return found


async def _remove(client: Client, pods: Sequence[tuple[str, str]]) -> None:
    for space, name in pods:
        with suppress(NotFound):
            await client.delete(PODS, name, space, grace_seconds=0)
