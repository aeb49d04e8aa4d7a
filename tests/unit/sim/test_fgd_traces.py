"""The protocol on the public lists: the published policies reach the published figures."""

from pathlib import Path

import pytest
from bench.fgd.one_list import Wanted, run
from bench.support import openb, openb_made

LISTS = openb.directory() or Path()
pytestmark = pytest.mark.skipif(openb.directory() is None, reason=openb.ABSENT)

PUBLISHED = [
    # list, policy, per cent of the GPUs allocated when 100 % and 130 % had been asked for
    ("default", "best-fit", 92.86, 93.08),
    ("default", "fgd", 95.23, 95.39),
    ("default", "dot-product", 90.62, 90.85),
    ("gpuspec33", "fgd", 87.84, 94.55),
]
SPREAD = 0.6
"""Points by which one seed may lie off the mean of ten."""


@pytest.mark.parametrize(("name", "policy", "at_100", "at_130"), PUBLISHED)
def test_the_policies_reach_what_was_published(
    name: str, policy: str, at_100: float, at_130: float
) -> None:
    outcome = run(Wanted(openb.nodes(LISTS), openb.pods(LISTS, name), policy, seed=42))
    assert outcome.allocation["100"] == pytest.approx(at_100, abs=SPREAD)
    assert outcome.allocation["130"] == pytest.approx(at_130, abs=SPREAD)


OURS = [
    # list, at least that much when 100 % and 130 % had been asked for
    ("default", 96.0, 96.2),
    pytest.param("gpuspec33", 94.0, 95.5, marks=pytest.mark.soak),
    pytest.param("gpushare100", 87.0, 87.8, marks=pytest.mark.soak),
    pytest.param("multigpu50", 97.2, 97.5, marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("name", "at_100", "at_130"), OURS)
def test_foresight_goes_beyond_the_published_policies(
    name: str, at_100: float, at_130: float
) -> None:
    outcome = run(Wanted(openb.nodes(LISTS), openb.pods(LISTS, name), "lockstep", seed=42))
    assert outcome.allocation["100"] >= at_100
    assert outcome.allocation["130"] >= at_130


def test_pods_without_gpus_leave_the_nodes_that_eight_gpus_need(tmp_path: Path) -> None:
    openb_made.complete(LISTS, tmp_path)
    outcome = run(Wanted(openb.nodes(tmp_path), openb.pods(tmp_path, "cpu250"), "lockstep", 43))
    assert outcome.first_drop_at is not None
    assert outcome.first_drop_at >= 90.0
