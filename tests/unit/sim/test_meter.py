"""The samples that charts are drawn from."""

import pytest

from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.meter import SAMPLES, Meter
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.result.record import Result


@pytest.mark.parametrize("moments", [1, SAMPLES - 1, SAMPLES, SAMPLES + 1, 5 * SAMPLES])
def test_charts_begin_at_the_start_and_are_sampled_evenly(moments):
    result = Result(seed=0)
    meter = Meter(initial_cluster_of(parse("1x8")).cluster().table, result)
    for now in range(moments):
        meter.advance(now)
        meter.sample()
    times = [sample.time for sample in result.samples]
    stride = 1
    while moments > stride * (SAMPLES - 1):
        stride *= 2
    assert times == list(range(0, moments, stride))
