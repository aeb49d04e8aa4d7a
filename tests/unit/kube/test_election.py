"""The election under clocks that disagree, slow answers, lost answers and pauses."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.api.core import LeaseSpec
from lockstep.kube.election import Election, Move, Observation, Timing

TIMING = Timing(lease=15.0, fence=10.0, retry=2.0)


@dataclass
class Store:
    """The one lease, as a server keeps it: a write must name the version that it saw."""

    version: int = 0
    spec: LeaseSpec | None = None

    def read(self) -> Observation | None:
        return None if self.spec is None else Observation(str(self.version), self.spec)

    def write(self, seen: Observation | None, spec: dict[str, object]) -> Observation | None:
        current = self.read()
        if (seen is None) != (current is None):
            return None
        if seen is not None and current is not None and seen.version != current.version:
            return None
        self.version += 1
        old = self.spec or LeaseSpec()
        self.spec = LeaseSpec(
            holder_identity=str(spec["holderIdentity"]),
            lease_duration_seconds=int(str(spec["leaseDurationSeconds"])),
            lease_transitions=int(str(spec.get("leaseTransitions", old.lease_transitions))),
        )
        return self.read()


@dataclass
class Candidate:
    """A candidate with a clock of its own; what it reads and writes takes time."""

    election: Election
    skew: float
    ledger: list[float] = field(default_factory=list)

    def clock(self, true_time: float) -> float:
        return true_time + self.skew


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # who acts
        st.floats(0.0, 6.0),  # time until it reads
        st.floats(0.0, 6.0),  # time from its read to its write
        st.floats(0.0, 6.0),  # time from its write to the answer
        st.booleans(),  # whether the answer arrives
    ),
    max_size=60,
)


@settings(max_examples=examples(300))
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), STEPS)
def test_there_are_never_two_leaders(
    skews: list[float], steps: list[tuple[int, float, float, float, bool]]
) -> None:
    store = Store()
    candidates = [Candidate(Election(f"c{i}", TIMING), skew) for i, skew in enumerate(skews)]
    now = 0.0

    def pass_time(seconds: float) -> None:
        # Leads are intervals that end with their fence: looking at a few points is enough.
        nonlocal now
        for _ in range(4):
            leaders = [c for c in candidates if c.election.leads(c.clock(now))]
            assert len(leaders) <= 1
            now += seconds / 4

    for who, before_read, before_write, before_answer, arrives in steps:
        candidate = candidates[who]
        pass_time(before_read)
        sent_at = candidate.clock(now)
        seen = store.read()
        move = candidate.election.observe(seen, candidate.clock(now))
        if move is Move.WAIT:
            continue
        pass_time(before_write)
        written = store.write(seen, candidate.election.spec(move, "2026-01-01T00:00:00Z"))
        pass_time(before_answer)
        if written is not None and arrives:
            candidate.election.renewed(written, sent_at, candidate.clock(now))


def held_by(holder: str, version: str = "1", duration: int = 15) -> Observation:
    return Observation(
        version,
        LeaseSpec(holder_identity=holder, lease_duration_seconds=duration, lease_transitions=3),
    )


def test_a_lease_unchanged_for_its_duration_is_taken() -> None:
    election = Election("me", TIMING)
    assert election.observe(held_by("other"), 100.0) is Move.WAIT
    assert election.observe(held_by("other"), 114.9) is Move.WAIT
    assert election.observe(held_by("other", version="2"), 114.9) is Move.WAIT
    assert election.observe(held_by("other", version="2"), 129.8) is Move.WAIT
    assert election.observe(held_by("other", version="2"), 129.9) is Move.TAKE


@pytest.mark.parametrize(
    ("lease", "move"),
    [
        (None, Move.CREATE),
        (held_by(""), Move.TAKE),
        (held_by("me"), Move.TAKE),
        (held_by("other"), Move.WAIT),
    ],
    ids=["none", "given back", "own, from before a restart", "of another"],
)
def test_the_first_move(lease: Observation | None, move: Move) -> None:
    assert Election("me", TIMING).observe(lease, 0.0) is move


def test_a_holder_known_to_be_gone_is_not_waited_for() -> None:
    held = Observation("1", LeaseSpec(holder_identity="dead", lease_duration_seconds=15))
    assert Election("me", TIMING).observe(held, 100.0) is Move.WAIT
    assert Election("me", TIMING).observe(held, 100.0, gone=True) is Move.TAKE


def test_a_leader_may_write_until_the_fence_before_its_renewal() -> None:
    election = Election("me", TIMING)
    election.observe(held_by(""), 100.0)
    election.renewed(held_by("me", version="2"), sent_at=100.0, now=103.0)
    assert election.leads(109.9)
    assert not election.leads(110.0)
    assert election.observe(held_by("me", version="2"), 105.0) is Move.RENEW


def test_a_leader_whose_lease_was_taken_stops_at_once() -> None:
    election = Election("me", TIMING)
    election.observe(None, 0.0)
    election.renewed(held_by("me"), sent_at=0.0, now=0.0)
    assert election.observe(held_by("other", version="2"), 1.0) is Move.WAIT
    assert not election.leads(1.0)


def test_a_take_over_is_a_transition_a_renewal_is_not() -> None:
    election = Election("me", TIMING)
    assert election.spec(election.observe(None, 0.0), "t")["leaseTransitions"] == 0
    election.observe(held_by(""), 0.0)
    assert election.spec(Move.TAKE, "t")["leaseTransitions"] == 4
    assert "leaseTransitions" not in election.spec(Move.RENEW, "t")


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 10, 10), (15, 10, 0)])
def test_times_that_cannot_be_safe_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="retry < fence < lease"):
        Timing(*times)
