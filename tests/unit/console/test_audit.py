"""Who did what: a log of the API server, or the console's own."""

from __future__ import annotations

import json
from pathlib import Path

from lockstep.console.audit import Trail


def event(name: str, verb: str = "create") -> str:
    return json.dumps(
        {
            "verb": verb,
            "user": {"username": "ana"},
            "sourceIPs": ["10.0.0.1"],
            "objectRef": {"resource": "trainingjobs", "namespace": "a", "name": name},
            "responseStatus": {"code": 201},
            "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
        }
    )


def test_changes_are_told_the_latest_first(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    lines = [event("one"), event("read", "get"), "no json", "[]", "null", event("two")]
    log.write_text("\n".join(lines) + "\n")
    trail = Trail(log, None)
    assert [one["object"] for one in trail.latest("", 10)] == ["a/two", "a/one"]
    assert [one["object"] for one in trail.latest("one", 10)] == ["a/one"]
    assert len(trail.latest("", 1)) == 1
    assert trail.latest("", 10)[0]["user"] == "ana"


def test_the_own_log_is_private_and_tells_changes_alone(tmp_path: Path) -> None:
    own = tmp_path / "state" / "audit.log"
    trail = Trail(None, own)
    trail.note("ben", "127.0.0.1", "GET", "/api/jobs", 200)
    assert not own.exists()
    trail.note("ben", "127.0.0.1", "PATCH", "/api/objects/nodes/-/n", 200)
    assert own.stat().st_mode & 0o077 == 0
    (told,) = trail.latest("", 10)
    assert (told["user"], told["verb"], told["object"]) == (
        "ben",
        "patch",
        "/api/objects/nodes/-/n",
    )


def test_without_a_log_nothing_is_told(tmp_path: Path) -> None:
    assert Trail(tmp_path / "none", None).latest("", 10) == []
    assert Trail(None, None).latest("", 10) == []
