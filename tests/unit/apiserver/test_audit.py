"""The audit log holds what users changed, and no more."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockstep.apiserver.audit import AuditLog
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.routes import resource_route
from lockstep.console.audit import Trail
from lockstep.http.message import Peer, Request

JOBS = "/apis/lockstep.dev/v1alpha1/namespaces/lab/trainingjobs"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ANA = User("ana", ("dev",))
BODY = b'{"metadata": {"name": "llm"}, "spec": {"secret": "hidden"}}'


def note(path: Path, verb: str, target: str, user: User = ANA, body: bytes = BODY) -> None:
    headers = {"user-agent": "kubectl/v1.36"}
    request = Request(verb, target, headers, body, Peer("10.0.0.7"))
    request.verb = verb
    route = resource_route(request.path)
    assert route is not None
    AuditLog(path, clock=lambda: 0.0).note(request, user, route, 201)


@pytest.mark.parametrize(
    ("verb", "target", "user", "written"),
    [
        ("create", JOBS, ANA, True),
        ("patch", f"{JOBS}/llm", ANA, True),
        ("deletecollection", JOBS, ANA, True),
        ("create", JOBS, User("system:serviceaccount:lab:ci"), True),
        ("list", JOBS, ANA, False),
        ("create", REVIEWS, ANA, False),
        ("create", "/api/v1/namespaces/lab/pods/web/proxy/x", ANA, False),
        ("patch", f"{JOBS}/llm", User("lockstep:controllers"), False),
    ],
)
def test_changes_by_users_are_written(
    tmp_path: Path, verb: str, target: str, user: User, written: bool
) -> None:
    log = tmp_path / "audit.log"
    note(log, verb, target, user)
    assert log.exists() == written


def test_the_console_reads_the_log_and_no_body_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    note(log, "create", JOBS)
    assert b"hidden" not in log.read_bytes()
    assert log.stat().st_mode & 0o777 == 0o600
    assert Trail(log, None).latest("", 10) == [
        {
            "time": "1970-01-01T00:00:00Z",
            "user": "ana",
            "verb": "create",
            "resource": "trainingjobs",
            "object": "lab/llm",
            "from": "10.0.0.7",
            "client": "kubectl/v1.36",
            "status": 201,
        }
    ]


def test_a_body_that_cannot_be_read_is_no_hindrance(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    note(log, "create", JOBS, body=b"k8s\x00")
    assert "name" not in msgspec.json.decode(log.read_bytes())["objectRef"]


def test_a_full_log_makes_room_and_a_broken_one_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lockstep.apiserver.audit.LARGEST", 100)
    log = tmp_path / "audit.log"
    for _ in range(3):
        note(log, "create", JOBS)
    assert len(log.read_bytes().splitlines()) == 1
    assert (tmp_path / "audit.log.old").exists()
    (tmp_path / "blocked").write_text("no directory")
    note(tmp_path / "blocked" / "audit.log", "create", JOBS)
    assert "is not on record" in caplog.text
