"""Which logs a follower of a job takes up: each once, whether its pod is there or gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.jobs import job

from lockstep.api.core import Pod
from lockstep.api.wire import convert
from lockstep.cli import following
from lockstep.cli.connect import Session
from lockstep.cli.log_streams import Request
from lockstep.kube.kept_logs import KeptLog

JOB = job()


def pod(uid: str) -> Pod:
    tree: dict[str, Any] = {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": []}}
    return convert(tree, Pod)


def log(uid: str, ended: float = 0.0) -> KeptLog:
    return KeptLog(uid, uid, node="vm", job_uid=JOB.metadata.uid, started=1.0, ended=ended)


@pytest.mark.parametrize(
    ("listed", "pods", "from_start", "missed"),
    [
        pytest.param([log("a")], ["a"], True, [], id="created after the first look at pods"),
        pytest.param([log("a", 5.0)], [], True, ["a"], id="ended and gone"),
        pytest.param([log("a")], [], True, ["a"], id="gone, and its node is about to say so"),
        pytest.param([log("a", 5.0), log("b")], ["b"], False, [], id="gone before it was followed"),
        pytest.param([log("a", 5.0), log("b")], [], False, ["b"], id="gone at the first look"),
    ],
)
async def test_a_log_is_missed_where_its_pod_is_gone(
    monkeypatch: pytest.MonkeyPatch,
    listed: list[KeptLog],
    pods: list[str],
    from_start: bool,
    missed: list[str],
) -> None:
    async def kept_logs(*_: object) -> list[KeptLog]:
        return listed

    monkeypatch.setattr(following, "kept_logs", kept_logs)
    session = cast("Session", SimpleNamespace(client=None, namespace="default"))
    found = following.Following(session, Request(JOB.metadata.name), from_start=from_start)
    await found.look(JOB)
    assert [one.uid for one in found.missed([pod(uid) for uid in pods])] == missed
    assert found.missed([]) == []
