"""The embedded server and kube-apiserver, asked the same."""

from __future__ import annotations

import fcntl
import json

import pytest
from tests.integration.conformance.known import KNOWN, Known
from tests.integration.conformance.play import compare
from tests.integration.conformance.report import PAGE, share, table, unexplained
from tests.integration.conformance.script import SCRIPT
from tests.integration.conformance.servers import both

ENOUGH = 0.95
FEWEST = 300


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """The differences of every request.

    To find them out takes minutes: the first process does it for all that run side by side.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    result = shared / "conformance.json"
    with (shared / "conformance.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            with both(tmp_path_factory.mktemp("servers")) as servers:
                result.write_text(json.dumps(compare(SCRIPT, *servers)))
    differences: dict[str, list[str]] = json.loads(result.read_text())
    return differences


def test_enough_requests_are_answered_alike(found: dict[str, list[str]]) -> None:
    assert len(found) >= FEWEST
    assert share(found) >= ENOUGH


def test_every_difference_has_a_reason(found: dict[str, list[str]]) -> None:
    assert unexplained(found) == {}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.reason)
def test_every_known_difference_is_still_there(found: dict[str, list[str]], known: Known) -> None:
    assert any(known.explains(name, line) for name, lines in found.items() for line in lines)


def test_the_documentation_shows_the_findings(found: dict[str, list[str]]) -> None:
    assert table(found) in PAGE.read_text()
