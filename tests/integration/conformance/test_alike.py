"""The embedded server and kube-apiserver, asked the same."""

from __future__ import annotations

import pytest
from tests.integration.conformance.known import KNOWN, Known
from tests.integration.conformance.play import compare
from tests.integration.conformance.report import PAGE, share, table, unexplained
from tests.integration.conformance.script import SCRIPT
from tests.integration.conformance.servers import both

pytestmark = pytest.mark.xdist_group("conformance")
"""They share what takes minutes to find out, which each process would do anew."""

ENOUGH = 0.95
FEWEST = 300


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The differences of every request."""
    with both(tmp_path_factory.mktemp("servers")) as servers:
        return compare(SCRIPT, *servers)


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
