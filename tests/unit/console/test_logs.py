"""Logs in the console: of pods that are there and that are gone, each attempt on its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.waiting import eventually

from lockstep.api.core import Pod
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.api.wire import convert
from lockstep.console.logs import Logs
from lockstep.kube.errors import NotFound

WROTE = {("a", "n1"): "first words", ("b", "n1"): "second words", ("c", ""): "third words"}
"""Lines by the uid of the pod, and the node that keeps them."""


def kept(uid: str, attempt: int, job: str = "job") -> dict[str, Any]:
    return {"node": "n1", "pod": "digits-worker-0", "uid": uid, "job_uid": job, "ended": 1.0,
            "attempt": str(attempt), "containers": ["main"], "started": attempt}  # fmt: skip


def pod(uid: str, attempt: int) -> Pod:
    meta = {"name": "digits-worker-0", "uid": uid, "labels": {ATTEMPT_LABEL: str(attempt)}}
    tree = {"metadata": meta, "spec": {"containers": [{"name": "main"}]}}
    return convert({**tree, "status": {"phase": "Running"}}, Pod)


class Server:
    """What the API server answers: *there* is the uid of the pod that runs now."""

    def __init__(self, listed: list[dict[str, Any]], there: str) -> None:
        self.listed, self.there = listed, there
        self.asked: list[str] = []

    async def get_raw(self, path: str, query: dict[str, str]) -> bytes:
        self.asked.append(f"{path} {query['job']}")
        return json.dumps(self.listed).encode()

    async def logs(
        self, namespace: str, name: str, *, node: str, uid: str, **_: Any
    ) -> AsyncIterator[bytes]:
        words = WROTE.get((uid or self.there, node))
        if words is None:
            raise NotFound(404, "NotFound", name)
        yield f"2026-11-01T00:00:0{ord(words[0]) % 10}Z {words}\n".encode()


def followed(server: Server, pods: list[Pod], job: str | None, *, may: bool = True) -> Logs:
    async def allowed(_: object) -> bool:
        return may

    status = SimpleNamespace(attempt=2, phase="Running")
    found = job and SimpleNamespace(metadata=SimpleNamespace(uid=job), status=status)
    world = SimpleNamespace(
        pods_of=lambda *_: pods,
        pods=SimpleNamespace(get=lambda *_: pods[0] if pods else None),
        jobs=SimpleNamespace(get=lambda *_: found or None),
    )
    session = SimpleNamespace(client=server, rights=SimpleNamespace(may=allowed))
    return Logs(cast("Any", world), cast("Any", session), "default", "digits", {})


async def shown(topic: Logs, count: int) -> set[tuple[str, str]]:
    """Return pod and text of the lines once there are *count*."""
    lines: set[tuple[str, str]] = set()

    async def complete() -> Any:
        told = await topic.message() or {}
        lines.update((pod, text) for _, pod, text in told.get("lines", ()))
        return len(lines) == count

    await eventually(complete, 10.0, "the lines are there")
    return lines


FIRST, SECOND = ("digits-worker-0", "first words"), ("digits-worker-0 #1", "second words")
THIRD = ("digits-worker-0 #2", "third words")


@pytest.mark.parametrize(
    ("listed", "pods", "job", "expected"),
    [
        pytest.param([kept("a", 0)], [], "job", {FIRST}, id="failed"),
        pytest.param([kept("a", 0), kept("b", 1, "new")], [], None, {SECOND}, id="deleted"),
        pytest.param([kept("a", 0), kept("b", 1, "new")], [], "job", {FIRST}, id="made anew"),
        pytest.param(
            [kept("a", 0), kept("b", 1), kept("c", 2)],
            [pod("c", 2)],
            "job",
            {FIRST, SECOND, THIRD},
            id="attempts",
        ),
    ],
)
async def test_logs_of_pods_that_are_gone_are_shown(
    listed: list[dict[str, Any]], pods: list[Pod], job: str | None, expected: set[tuple[str, str]]
) -> None:
    server = Server(listed, "c")
    topic = followed(server, pods, job)
    assert await shown(topic, len(expected)) == expected
    await topic.picture()
    assert server.asked == ["/api/v1/namespaces/default/pods/-/log digits"]
    topic.end()


async def test_a_pod_gone_unread_is_read_from_its_node() -> None:
    server = Server([kept("a", 0)], there="")
    pods = [pod("a", 0)]
    topic = followed(server, pods, "job")
    assert (await topic.picture()).facts["state"] == "opening"
    pods.clear()
    assert await shown(topic, 1) == {FIRST}
    topic.end()


async def test_kept_logs_need_the_right_to_read_logs() -> None:
    server = Server([kept("a", 0)], "")
    topic = followed(server, [], "job", may=False)
    assert (await topic.picture()).facts["state"] == "refused"
    assert server.asked == []
