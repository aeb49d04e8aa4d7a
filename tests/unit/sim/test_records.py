"""What a simulation keeps of jobs and pods, in columns."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import job, simulate

from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.result import columns
from lockstep.sim.result.columns import Distinct, Texts
from lockstep.sim.result.job_records import JobRecords
from lockstep.sim.result.placements_log import PlacementsLog, Stay
from lockstep.sim.result.report import pieces

TIMES = st.floats(0, 1e9)
STAYS = st.lists(
    st.builds(
        Stay,
        job=st.sampled_from(["a", "a-b", "ab", "team/a", "ünï"]),
        pod=st.sampled_from(["a", "a-0", "a-b-worker-7", "other", "ünï-0", ""]),
        rank=st.integers(0, 1 << 20),
        node=st.sampled_from(["n0", "n1"]),
        gpus=st.lists(st.integers(0, 100), unique=True, max_size=4).map(tuple),
        nics=st.lists(st.integers(0, 9), unique=True, max_size=2).map(tuple),
        start=TIMES,
        end=st.none() | TIMES,
    ),
    max_size=20,
)


@settings(max_examples=examples(100), deadline=None)
@given(STAYS, st.integers(1, 5))
def test_stays_come_out_as_they_went_in(drawn, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "CHUNK", chunk)
        names, numbers = Texts(), Distinct[str]()
        stays = PlacementsLog(names)
        for stay in drawn:
            number = numbers.number(stay.job)
            if number == len(names):
                names.add(stay.job)
            stays.add(number, stay)
        assert list(stays) == drawn
        for number, name in enumerate(numbers.values):
            assert stays.of(number) == [stay for stay in drawn if stay.job == name]
        ordered = list(stays.in_order())
        assert ordered == sorted(drawn, key=lambda stay: (stay.start, stay.job, stay.rank))


def test_of_a_job_that_ended_the_same_is_left():
    world = initial_cluster_of(parse("1x1"))
    (work,) = read_jobs([job("a", "1x1", at=3, runs=5, queue="q")], world)
    lives = JobRecords()
    first, second = lives.begin(work), lives.begin(replace(work, runtime=None))
    first.started, first.ended, first.restarts, first.preemptions, first.moves = 4.0, 9.0, 1, 2, 3
    first.useful, first.lost = 5.0, 6.0
    lives.end(first)
    assert lives[0] == first and lives[0] is not first
    assert lives[1] is second
    assert lives.column("arrival").tolist() == [3.0, 3.0]
    second.moves = 7
    assert lives.column("moves").tolist() == [3, 7]
    assert [life.name for life in lives] == ["a", "a"]


@pytest.mark.parametrize("together", [1, 2, 1024])
@pytest.mark.parametrize("jobs", [(), ("a",), ("a", "b", "never")])
def test_the_report_is_one_json_object_however_it_is_cut(monkeypatch, together, jobs):
    monkeypatch.setattr("lockstep.sim.result.report.TOGETHER", together)
    sizes = {"never": "9x8"}
    given = [job(name, sizes.get(name, "2x2"), runs=60) for name in jobs]
    result = simulate("1x4", *given, options=Options(until=100))
    found = json.loads("".join(pieces(result, {"jobs": len(jobs)})))
    assert list(found) == ["seed", "jobs", "placements", "waiting", "communication"]
    stood = [name for name in jobs if name != "never"]
    assert [(one["job"], one["pod"], one["rank"], one["gpus"]) for one in found["placements"]] == [
        (name, f"{name}-worker-{rank}", rank, [2 * rank, 2 * rank + 1])
        for name in stood
        for rank in range(2)
    ]
    times = [(one["start"], one["end"]) for one in found["placements"]]
    assert times == [(0, 60), (0, 60), (60, None), (60, None)][: len(times)]
    assert all(one["nics"] == [] for one in found["placements"])
    assert [one["job"] for one in found["waiting"]] == list(jobs[2:])
