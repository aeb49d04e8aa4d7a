"""A launcher is silent when others are heard meanwhile, never when nobody is."""

from __future__ import annotations

import pytest

from lockstep.api.core import Lease, LeaseSpec
from lockstep.api.meta import ObjectMeta
from lockstep.jobs.hearing import Hearing


def lease(name: str, renewed: float) -> Lease:
    return Lease(
        metadata=ObjectMeta(name=name, namespace="team"), spec=LeaseSpec(renew_time=f"{renewed}")
    )


def hear(reports: dict[str, list[float]], looks: list[float]) -> frozenset[str]:
    """Look at the leases at these times; *reports* are the times at which each is renewed."""
    hearing = Hearing()
    last: list[Lease] = []
    for now in looks:
        last = [
            lease(name, max(past))
            for name, times in reports.items()
            if (past := [t for t in times if t <= now])
        ]
        hearing.listen(last, now)
    return hearing.silent(last)


EVERY_5 = [float(t) for t in range(0, 61, 5)]


@pytest.mark.parametrize(
    ("reports", "looks", "silent"),
    [
        ({"a": EVERY_5, "b": EVERY_5}, EVERY_5, set()),
        ({"a": EVERY_5, "b": [0.0]}, EVERY_5[:3], set()),
        ({"a": EVERY_5, "b": [0.0]}, EVERY_5[:4], {"b"}),
        ({"a": [0.0], "b": [0.0]}, EVERY_5, set()),
        ({"a": [0.0]}, EVERY_5, set()),
        # The server was away from 5 to 45; a is heard first afterwards.
        ({"a": [0.0, 5.0, 45.0], "b": [0.0, 5.0]}, [0.0, 5.0, 45.0], set()),
    ],
    ids=["all report", "soon", "one is silent", "all are", "alone", "after an outage"],
)
def test_who_is_silent(
    reports: dict[str, list[float]], looks: list[float], silent: set[str]
) -> None:
    assert hear(reports, looks) == silent


def test_who_reports_again_is_silent_no_more() -> None:
    assert hear({"a": EVERY_5, "b": [0.0, 30.0]}, EVERY_5[:8]) == set()
