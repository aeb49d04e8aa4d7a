"""The layout of ranks against the true optimum, and what holds for any layout."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.optimum import optimum, random_task

from lockstep.scheduler.core.ranks.communication_cost import cost
from lockstep.scheduler.core.ranks.rank_mapping import Task, lay_out, lower_bound

INSTANCES = [50, pytest.param(200, marks=pytest.mark.soak)]


def seconds(task: Task, place: np.ndarray) -> float:
    return cost(task.talk, task.slots.ids[:, place], task.links)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("instances", INSTANCES)
def test_layouts_are_near_the_optimum(instances):
    gaps = []
    for seed in range(instances):
        task = random_task(seed)
        # What stays inside the units is the same for all layouts and would flatter the ratio.
        always = task.talk.inside * float(task.links.slowness[-1])
        least = optimum(task) - always
        gaps.append((seconds(task, lay_out(task)) - always) / least - 1 if least > 0 else 0.0)
    assert min(gaps) > -1e-6, "cheaper than the optimum: the two costs differ"
    assert np.mean(gaps) < 0.02
    assert max(gaps) < 0.10


@pytest.mark.parametrize("seed", range(20))
def test_every_unit_gets_a_slot_of_its_own(seed):
    task = random_task(seed)
    place = lay_out(task)
    assert len(set(place.tolist())) == task.talk.units
    assert seconds(task, place) <= seconds(task, task.start) + 1e-12
    assert lower_bound(task) <= seconds(task, place) + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_same_task_same_layout(seed):
    assert (lay_out(random_task(seed)) == lay_out(random_task(seed))).all()


@pytest.mark.parametrize("seed", range(20))
def test_placed_units_stay_and_others_keep_to_their_kind(seed):
    task = random_task(seed)
    kind = np.arange(task.talk.units) % 2
    slots = replace(task.slots, kind=np.full(len(task.slots.kind), 2))
    slots.kind[task.start] = kind
    fixed = np.arange(task.talk.units) < 3
    task = replace(task, kind=kind, slots=slots, fixed=fixed)
    place = lay_out(task)
    assert (place[fixed] == task.start[fixed]).all()
    assert (slots.kind[place] == kind).all()
    assert len(set(place.tolist())) == task.talk.units
    assert seconds(task, place) <= seconds(task, task.start) + 1e-12
