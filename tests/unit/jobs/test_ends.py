"""Ends of ranks and pods without a log: one verdict in status, explain, events and console."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.support.job_world import FakeCluster
from tests.support.jobs import job

from lockstep.api import timestamp
from lockstep.api.containers import ContainerStatus
from lockstep.api.diagnosis import Class
from lockstep.api.node_health import Finding
from lockstep.api.wire import convert
from lockstep.cli.views.explain import explain_job
from lockstep.console.views import job as console
from lockstep.jobs.decide import decide
from lockstep.jobs.job_state import Decision

WARNING = "train.py:3: UserWarning: Connection timed out, will retry"
SCRIPT = "python: can't open file '/app/train.py': [Errno 2] No such file or directory"
MODULE = "ModuleNotFoundError: No module named 'apex'"
ENDS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"signal": 9, "line": WARNING}, "unknown", "restart_in_place", "was killed (signal 9"),
    ({"signal": 9, "oom": True}, "user", "stop_and_tell_user", "more memory than it may"),
    ({"signal": 11, "line": "all is well"}, "software", "restart_in_place", "crashed"),
    ({"signal": 7}, "user", "stop_and_tell_user", "/dev/shm"),  # noqa: S108 - words
    ({"code": 2, "line": SCRIPT}, "user", "stop_and_tell_user", "script /app/train.py is not in"),
    ({"code": 127, "line": "trainn: No such file"}, "user", "stop_and_tell_user", "command was"),
    ({"code": 1, "line": MODULE}, "user", "stop_and_tell_user", "lacks the Python module apex"),
]


def running(**more: Any) -> FakeCluster:
    world = FakeCluster(job(**more))
    world.run()
    if "launcher" not in more:
        world.everybody("Ready")
        world.everybody("Running")
    return world


def check(world: FakeCluster, decision: Decision, class_: str, action: str, words: str) -> None:
    """Hold that all views of the job say the same of its failure."""
    found = decision.status.diagnosis
    assert found is not None
    assert (found.class_, found.action) == (class_, action)
    assert words in found.cause
    assert not any("UserWarning" in line for line in found.evidence)
    assert world.job is not None
    shown = structs.replace(world.job, status=decision.status)
    assert f"{class_}: {found.cause}" in "\n".join(explain_job(shown, None, world.now))
    assert any(f"{class_}: {found.cause}" in note.message for note in decision.notes)
    facts = console.page(shown, None, [], [], {}).facts
    assert (facts["diagnosis"]["class"], facts["diagnosis"]["cause"]) == (class_, found.cause)


@pytest.mark.parametrize(("ended", "class_", "action", "words"), ENDS)
def test_a_rank_without_a_log_has_one_verdict(
    ended: dict[str, Any], class_: str, action: str, words: str
) -> None:
    world = running()
    world.report("digits-worker-1", "Failed", ended={"rank": 1, "at": 5.0, **ended})
    check(world, decide(world.seen(), world.now), class_, action, words)


@pytest.mark.parametrize(
    ("code", "reason", "said", "class_", "words"),
    [
        (137, "Error", WARNING, "unknown", "was killed (signal 9"),
        (137, "OOMKilled", "", "user", "more memory than it may"),
        (139, "Error", "", "software", "crashed"),
        (127, "Error", "", "user", "command was not found"),
        (2, "Error", SCRIPT, "user", "script /app/train.py is not in"),
        (128, "StartError", 'exec: "trainn": executable file not found in $PATH', "user", "comm"),
    ],
)
def test_a_pod_without_a_log_has_one_verdict(
    code: int, reason: str, said: str, class_: str, words: str
) -> None:
    world = running(launcher="None")
    world.fail("digits-worker-1", code)
    end = {"exitCode": code, "reason": reason, "message": said}
    state = convert({"name": "main", "state": {"terminated": end}}, ContainerStatus)
    world.set("digits-worker-1", "Failed", container_statuses=[state])
    action = {"user": "stop_and_tell_user"}.get(class_, "restart_in_place")
    check(world, decide(world.seen(), world.now), class_, action, words)


def finding(cause: str, class_: Class, sure: float, now: float) -> Finding:
    return Finding(
        cause=cause,
        class_=class_,
        action="stop_and_tell_user" if class_ == "user" else "isolate_node",
        confidence=sure,
        last=timestamp.show(now),
        evidence="oom-kill: ...",
    )


@pytest.mark.parametrize(
    ("ended", "class_"), [({"signal": 9}, "platform"), ({"code": 1, "line": MODULE}, "user")]
)
def test_the_kernels_kill_explains_killed_ranks_alone(ended: dict[str, Any], class_: str) -> None:
    world = running()
    world.report("digits-worker-1", "Failed", ended={"rank": 1, "at": 5.0, **ended})
    for one in (
        finding("the node ran out of memory", "platform", 0.7, world.now),
        finding("a process used more memory than its container may", "user", 0.9, world.now),
    ):
        found = decide(replace(world.seen(), findings={"node-1": [one]}), world.now)
        verdict = found.status.diagnosis
        assert verdict is not None
        wanted = one.class_ if class_ == "platform" else class_
        assert verdict.class_ == wanted
        assert (verdict.cause == one.cause) == ("signal" in ended)


def waiting(reason: str, message: str) -> list[ContainerStatus]:
    state = {"waiting": {"reason": reason, "message": message}}
    return [convert({"name": "main", "state": state}, ContainerStatus)]


def test_a_missing_image_is_the_users_until_it_is_there() -> None:
    world = FakeCluster(job())
    world.settle()
    world.place()
    world.settle()
    told = waiting("ErrImagePull", "rpc error: manifest for x/y:1 not found: manifest unknown")
    world.set("digits-worker-0", "Pending", container_statuses=told)
    world.settle()
    assert world.job is not None
    verdict = world.job.status.diagnosis
    assert verdict is not None
    assert (verdict.class_, verdict.action) == ("user", "stop_and_tell_user")
    shown = "\n".join(explain_job(world.job, None, world.now))
    assert "why: user: the image cannot be pulled: check its name" in shown
    backs_off = waiting("ImagePullBackOff", "Back-off pulling image x/y:1")
    world.set("digits-worker-0", "Pending", container_statuses=backs_off)
    assert decide(world.seen(), world.now).status.diagnosis == verdict
    status = structs.replace(world.pods["digits-worker-0"].status, container_statuses=[])
    world.pods["digits-worker-0"] = structs.replace(world.pods["digits-worker-0"], status=status)
    world.start()
    world.settle()
    assert world.job.status.diagnosis is None
