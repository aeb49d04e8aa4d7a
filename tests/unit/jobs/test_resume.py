"""Where ranks go on from, compared with what each launcher could really give."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.jobs import job, role

from lockstep.api.copies import Copies
from lockstep.api.rendezvous import Report, Snapshot
from lockstep.api.training import TrainingJobStatus
from lockstep.jobs.gathering import resume
from lockstep.jobs.roster import read

STEPS = st.sets(st.integers(1, 4), max_size=2)


@st.composite
def worlds(draw: Any) -> tuple[int, dict[str, Report], TrainingJobStatus]:
    """Return the number of ranks, what their launchers report, and the job's status."""
    size = draw(st.integers(2, 4))
    told = {}
    for rank in range(size):
        lost = draw(st.booleans())
        own = [] if lost else draw(STEPS)
        there = [Snapshot(local=0, step=step, rank=rank, size=size) for step in own]
        kept = [] if lost else draw(STEPS)
        partial = draw(st.booleans())
        other = (rank + size // 2) % size
        there += [Snapshot(local=-1, step=s, rank=other, size=size, own=partial) for s in kept]
        told[f"digits-worker-{rank}"] = Report(uid="u", address=f"h{rank}:1", snapshots=there)
    copies = Copies(bytes=1, alike=draw(st.booleans()))
    return size, told, TrainingJobStatus(replicated=draw(st.booleans()), copies=copies)


@given(worlds())
def test_every_rank_gets_a_whole_state_that_is_its_own(
    given_world: tuple[int, dict[str, Report], TrainingJobStatus],
) -> None:
    size, told, status = given_world
    roster = read(job(role(replicas=size)), [], status)
    found = resume(roster, told, status)
    held = {
        (one.rank, one.step, report.address): one
        for report in told.values()
        for one in report.snapshots
    }
    local = {(rank, step) for (rank, step, _), one in held.items() if one.local == 0}
    steps = {step for _, step in local}
    whole = {step for step in steps if all((rank, step) in local for rank in range(size))}
    somewhere = {
        step
        for step in steps
        if all(any(key[:2] == (rank, step) for key in held) for rank in range(size))
    }
    if whole:
        assert (found.step, found.sources, found.own) == (max(whole), [], False)
    elif somewhere:
        assert (found.step, found.own) == (max(somewhere), True)
        for rank in range(size):
            gives = any((rank, found.step, address) in held for address in found.sources)
            assert gives or (rank, found.step) in local
        assert any((r, found.step, a) in held for r in range(size) for a in found.sources)
    elif found.step is not None:
        assert status.replicated
        assert status.copies is not None
        assert status.copies.alike
        assert not found.own
        assert all(any(key[1:] == (found.step, a) for key in held) for a in found.sources)
