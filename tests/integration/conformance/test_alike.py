"""The embedded server and kube-apiserver, asked the same."""

from __future__ import annotations

import pytest
from tests.support.conformance.known import KNOWN, REFUSED, Known, Refused, reason_for
from tests.support.conformance.play import compare
from tests.support.conformance.report import PAGE, share, table, unexplained
from tests.support.conformance.script import SCRIPT
from tests.support.conformance.servers import both

ENOUGH = 0.95
FEWEST = 300


pytestmark = pytest.mark.xdist_group("conformance")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The differences of every request; to find them out takes minutes."""
    with both(tmp_path_factory.mktemp("servers")) as servers:
        return compare(SCRIPT, *servers)


def test_enough_requests_are_answered_alike(found: dict[str, list[str]]) -> None:
    assert len(found) >= FEWEST
    assert share(found) >= ENOUGH


def test_every_difference_has_a_reason(found: dict[str, list[str]]) -> None:
    assert unexplained(found) == {}


@pytest.mark.parametrize("known", [*REFUSED, *KNOWN], ids=lambda known: known.reason)
def test_every_known_difference_is_still_there(
    found: dict[str, list[str]], known: Known | Refused
) -> None:
    assert any(known.explains(name, line) for name, lines in found.items() for line in lines)


def test_the_documentation_shows_the_findings(found: dict[str, list[str]]) -> None:
    assert table(found) in PAGE.read_text()


@pytest.mark.parametrize(
    ("request_name", "line", "explained"),
    [
        ("CRD", ".status: 201 instead of 500", False),
        ("CRD gone", ".status: 404 instead of 200", False),
        ("CRD", ".body.metadata.finalizers: [] instead of '(absent)'", True),
        ("CRD", ".body.spec.scope: 'Cluster' instead of 'Namespaced'", False),
        ("anonymous", ".status: 401 instead of 403", True),
        ("anonymous", ".status: 200 instead of 403", False),
        ("kinds' services", ".status: 200 instead of 500", False),
        ("discovery of all groups", ".status: 404 instead of 200", False),
    ],
)
def test_no_pattern_excuses_a_status(request_name: str, line: str, explained: bool) -> None:
    assert (reason_for(request_name, line) is not None) is explained
