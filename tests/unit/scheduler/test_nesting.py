"""What is ruled out without a search: never what fits, and what lesser pods leave no room for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from tests.support.aligned import aligned, cluster_of, machine

from lockstep.api.core import Pod
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.packing.packing import Item, Quota
from lockstep.scheduler.core.placement.capacity_bounds import least_room, takes_no_more


def shape(one: Pod) -> PodShape:
    """Return the shape of a pod in a cluster that knows how devices are connected."""
    cluster = cluster_of(machine("n"))
    cluster.set_pod(one)
    return cluster.pods["default", one.metadata.name].shape


def wired(gpus: int, nics: int, must: str = "pcie", cpu: int = 0) -> PodShape:
    return shape(aligned("p", gpus, nics, cpu, must=must))


def shared(compute: int, cards: int = 1) -> PodShape:
    asked = {"lockstep.dev/gpu-compute": compute, "lockstep.dev/gpu-cards": cards}
    return shape(aligned("p", 0, requests=asked))


@pytest.mark.parametrize(
    ("less", "more", "expected"),
    [
        (wired(1, 1), wired(2, 1), True),
        (wired(2, 1), wired(1, 1), False),
        (wired(1, 1), wired(3, 2), True),
        (wired(2, 1), wired(2, 2), False),  # 2 + 2 may lie under two roots, 2 + 1 may not
        (wired(2, 1), wired(2, 1, cpu=4), True),
        (wired(2, 1, cpu=4), wired(2, 1), False),
        (wired(2, 1, must=""), wired(2, 1), True),
        (wired(2, 0, must="nvlink"), wired(4, 0, must="nvlink"), True),
        (wired(2, 0, must="nvlink"), wired(4, 0, must=""), False),
        (shared(40), shared(60), True),
        (shared(60), shared(40, cards=2), False),
        (shared(40), wired(1, 0), False),  # whole GPUs are not cut up in the books
    ],
)
def test_who_can_stand_where_the_other_does(less, more, expected):
    assert takes_no_more(less, more) is expected


class _Fit(NamedTuple):
    """As much of a fit as says where pods may stand."""

    eligible: np.ndarray


BOTH, LEFT = np.array([True, True]), np.array([True, False])


@pytest.mark.parametrize(
    ("eligible", "needs", "expected"),
    [
        ((BOTH, BOTH), (4, 3), [7, 3]),  # the lesser pods, and the greater in their places
        ((LEFT, BOTH), (4, 3), [4, 3]),  # where those may not stand says nothing of them
        ((BOTH, LEFT), (4, 3), [7, 3]),
        ((BOTH, BOTH), (4, 0), [4, 0]),
        ((BOTH, BOTH), (0, 3), [3, 3]),
    ],
)
def test_for_how_many_of_a_kind_there_must_be_room(eligible, needs, expected):
    items = [Item(wired(1, 1), 0, 9), Item(wired(2, 1), 1, 9)]
    quotas = [Quota(need, need) for need in needs]
    assert least_room(items, quotas, [_Fit(one) for one in eligible]) == expected


def test_members_that_may_be_left_out_need_no_room():
    items = [Item(wired(1, 1), 0, 2), Item(wired(2, 1), 0, 9)]
    fits = [_Fit(BOTH), _Fit(BOTH)]
    assert least_room(items, [Quota(5, 11)], fits) == [5, 3]
