"""When the leases of simulated nodes are renewed."""

from __future__ import annotations

import pytest

from lockstep.nodes.simulated.registration import (
    LEASE_SECONDS,
    RENEWALS_PER_LEASE,
    renewal_due,
    renewal_interval,
)

INTERVAL = LEASE_SECONDS / RENEWALS_PER_LEASE


@pytest.mark.parametrize(
    ("looks", "busy", "renewed"),
    [
        (0, False, False),
        (1, False, True),
        (1, True, False),
        (2, True, True),
    ],
    ids=["just registered", "at rest", "busy", "busy for long"],
)
@pytest.mark.parametrize("late", [-0.2, 0.0, 0.2])
def test_a_busy_fleet_leaves_out_every_other_renewal(
    looks: int, busy: bool, renewed: bool, late: float
) -> None:
    age = (looks + late) * INTERVAL
    assert renewal_due(age, LEASE_SECONDS, busy=busy) is renewed


@pytest.mark.parametrize("nodes", [1, 1000, 1500, 20_000])
def test_a_lease_lasts_for_several_renewals(nodes: int) -> None:
    lease = max(LEASE_SECONDS, RENEWALS_PER_LEASE * renewal_interval(nodes))
    assert renewal_due(2 * renewal_interval(nodes), lease, busy=True)
    assert 2 * renewal_interval(nodes) <= lease / 2
