"""What the scheduler decides in thousands of random runs, kept as digests.

``python -m tests.support.recorded`` plays all runs and writes the digests anew; with ``--check`` it
names the runs that differ, and with ``--show SEED`` it prints one run as lines, to be compared with
those of another version. A change of the code that means to change no decision leaves them as they
are; one that does change some renews them in a commit of its own. The nine public lists of the
fragmentation protocol are among them where they are at hand; else their digests stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fgd.one_list import Wanted
from bench.fgd.one_list import run as fill
from bench.support import openb
from tests.support.random_worlds import EPOCH, Drawn, draw

from lockstep.api.core import Pod
from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.runtime.clock import NotConverged
from lockstep.scheduler.core.runtime.start_estimates import StartEstimates
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import read_initial_cluster, view
from lockstep.sim.input.jobs import read_jobs

FILE = Path(__file__).parents[1] / "unit" / "scheduler" / "recorded_decisions.txt"
LISTS_FILE = FILE.with_name("recorded_lists.txt")
LISTS = (
    "cpu050",
    "cpu100",
    "default",
    "gpushare40",
    "gpushare100",
    "gpuspec10",
    "gpuspec33",
    "multigpu20",
    "multigpu50",
)
RUNS = 2000
A_LINE = 10
MOMENTS = 40
"""Moments that a run is played for; moves of others may be tried for ever."""
ROUNDS = 200
"""Cycles at one moment after which it is taken that they never end; the record says so."""
EXPLAINED = 3
"""Waiting workloads of which each moment asks why."""


@dataclass(slots=True)
class Record:
    """What was decided in one run, and what was said about it."""

    decided: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def digests(self) -> str:
        """Return a digest of each."""
        return f"{_digest(self.decided)}-{_digest(self.said)}"

    def decide(self, at: float, what: str, *more: object) -> None:
        """Note a decision."""
        self.decided.append(_line(at, what, *more))

    def say(self, at: float, what: str, *more: object) -> None:
        """Note what is told to users."""
        self.said.append(_line(at, what, *more))

    def follow(self, at: float, cluster: Any, last: dict[str, object]) -> None:
        """Note what is held for workloads that wait, where that changed."""
        now = dict(_held(cluster))
        for key in sorted(last.keys() | now.keys()):
            if last.get(key) != now.get(key):
                self.decide(at, "hold", key, now.get(key))
        last.clear()
        last.update(now)

    def placement(self, at: float, placement: Any) -> None:
        """Note where members stand."""
        for one in placement.assignments:
            grant = one.spot.grant
            self.decide(at, "stand", one.member.key, one.spot.node, list(grant))

    def eviction(self, at: float, eviction: Any) -> None:
        """Note who has to go for whom."""
        victims = sorted(member.key for member in eviction.victims)
        self.decide(at, "evict", _key(eviction.workload), victims, sorted(eviction.nodes.items()))
        self.say(at, "evicted", eviction.reason, eviction.message)


class _Simulated(Simulation):
    """A simulation that writes down what it is told to do."""

    def __init__(self, record: Record, *args: Any) -> None:
        super().__init__(*args)
        self._record = record
        self._last: dict[str, object] = {}
        self._played = 0

    def play(self) -> None:
        result = self.run(self._progress, lambda: self._played >= MOMENTS)
        for life in sorted(result.lives, key=lambda one: one.name):
            ends = (life.started, life.ended, life.gave_up)
            self._record.decide(result.end, "life", life.name, *map(_time, ends), life.lost)
            self._record.say(result.end, "waits", life.name, life.waiting)

    def _progress(self, at: float, _ended: int, _there: int) -> None:
        self._played += 1
        self._record.follow(at, self.cluster, self._last)
        there = (self.cluster.workloads.get(key) for key in self._decider.pending_queue.all())
        waiting = [workload for workload in there if workload is not None]
        for workload in waiting[:EXPLAINED] if len(self._record.said) < 60 else ():
            _tell(self._record, at, self._decider, workload)

    def stand(self, placement: Any) -> None:
        self._record.placement(self._now, placement)
        super().stand(placement)

    def roll_back(self, rollback: Any) -> None:
        names = sorted(member.key for member in rollback.members)
        self._record.decide(self._now, "roll back", _key(rollback.workload), names)
        super().roll_back(rollback)

    def give_up(self, key: Any, verdict: Any) -> None:
        self._record.decide(self._now, "give up", _key(key))
        self._record.say(self._now, "given up", verdict.reason, verdict.message)
        super().give_up(key, verdict)

    def make_way(self, eviction: Any) -> None:
        self._record.eviction(self._now, eviction)
        super().make_way(eviction)

    def rearrange(self, one: Any) -> None:
        moves = [_key(key) for key in one.moves]
        self._record.decide(self._now, "move", _key(one.workload), moves, one.price)
        super().rearrange(one)


class _Estimated(StartEstimates):
    """Start estimates that write down what happens on the way to them."""

    def __init__(self, record: Record, decider: Decider) -> None:
        self._record = record
        super().__init__(decider, EPOCH, rounds=ROUNDS)

    def play(self) -> None:
        cluster, last = self._cluster, dict[str, object]()
        for _ in range(MOMENTS):
            if not self.advance():
                break
            self._record.follow(self._clock.now, cluster, last)
        self.break_off("the test looks no further")
        for key, one in sorted(self.found.items(), key=lambda pair: pair[0].name):
            self._record.decide(0, "estimate", _key(key), _time(one.at), _time(one.not_before))
            self._record.say(0, "estimate", _key(key), one.why)

    def stand(self, placement: Any) -> None:
        self._record.placement(self._clock.now, placement)
        super().stand(placement)

    def make_way(self, eviction: Any) -> None:
        self._record.eviction(self._clock.now, eviction)
        super().make_way(eviction)

    def rearrange(self, rearrangement: Any) -> None:
        moves = [_key(key) for key in rearrangement.moves]
        self._record.decide(self._clock.now, "move", _key(rearrangement.workload), moves)
        super().rearrange(rearrangement)


def play(seed: int) -> Record:
    """Play the run of a seed: each fifth an estimate, the others simulations."""
    drawn, record = draw(seed), Record()
    try:
        if seed % 5 == 4:
            _estimate(drawn, record)
        else:
            _simulate(drawn, record, seed)
    except NotConverged as error:
        record.decide(error.moment, "not settled", sorted(error.jobs))
    return record


def _simulate(drawn: Drawn, record: Record, seed: int) -> None:
    world = read_initial_cluster(drawn.cluster)
    faults = Faults(checkpoint_interval=60, restart_cost=10)
    if seed % 4 == 3:
        faults = Faults(node_mtbf=2, node_repair=0.05, checkpoint_interval=60, restart_cost=10)
    policy = DefragmentationPolicy("30s", "100h", "60s") if seed % 3 == 0 else None
    options = Options(
        seed=seed,
        until=drawn.until,
        period=(0.0, 0.0, 10.0)[seed % 3],
        faults=faults,
        defrag=policy,
        rounds=ROUNDS,
    )
    _Simulated(record, world, read_jobs(drawn.jobs, world), options).play()


def _estimate(drawn: Drawn, record: Record) -> None:
    """Let all jobs be there at once, and some pods of none, and look ahead."""
    world = read_initial_cluster(drawn.cluster)
    cluster = world.cluster()
    for work in read_jobs(drawn.jobs, world):
        cluster.set_gang(work.gang)
        for one in work.pods:
            if work.runtime is not None:
                one.metadata.annotations["lockstep.dev/runtime"] = str(work.runtime)
            cluster.set_pod(one)
    for one in drawn.jobs[::3]:
        cluster.set_pod(_alone(one))
    decider = Decider(cluster)
    for key in decider.waiting():
        _tell(record, 0.0, decider, cluster.workloads[key])
    _Estimated(record, decider).play()


def _alone(job: Any) -> Pod:
    """Return a pod of no gang that asks for what a member of a job asks for."""
    name, template = f"alone-{job['metadata']['name']}", job["spec"]["groups"][0]["template"]
    kept = {k: v for k, v in job["metadata"]["annotations"].items() if k.endswith("/runtime")}
    meta = {"name": name, "namespace": "default", "uid": name, "annotations": kept}
    meta["creationTimestamp"] = "2025-12-31T23:50:00Z"
    spec = {**template["spec"], "schedulerName": "lockstep"}
    return view({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, Pod)


def _tell(record: Record, at: float, decider: Any, workload: Any) -> None:
    verdict = decider.broken.get(workload.key) or explain(decider.cluster, workload)
    record.decide(at, "reason", _key(workload.key), verdict.reason)
    record.say(at, "reason", _key(workload.key), verdict.message)


def _held(cluster: Any) -> Iterator[tuple[str, object]]:
    """Yield what is held for whom: reservations of room and of quota, and nominations."""
    room = cluster.reservations.room
    if room is not None:
        yield f"room {room.workload.name}", (room.at, sorted(room.place.items()))
    for held in cluster.reservations.quota.values():
        yield f"quota {held.workload.name}", held.at
    for one in cluster.nominations:
        yield f"nominated {one.workload.name}", (one.purpose, sorted(one.nodes.items()))


def _key(key: Any) -> str:
    return f"{key.kind}/{key.name}"


def _time(at: float | None) -> float | None:
    """Return a time in milliseconds' precision: the last digits differ between machines."""
    return None if at is None else round(at, 3)


def _line(at: float, what: str, *more: object) -> str:
    return json.dumps([_time(at), what, *more], default=str)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def digests(seed: int) -> str:
    """Return the digests of one run."""
    return play(seed).digests


def list_digest(name: str, policy: str = "lockstep") -> str:
    """Return the digest of the placements of a public list's pods.

    Raises:
        FileNotFoundError: when the lists are not at hand.
    """
    lists = openb.directory()
    if lists is None:
        raise FileNotFoundError(openb.ABSENT)
    found = fill(Wanted(openb.nodes(lists), openb.pods(lists, name), policy, seed=42))
    return _digest(f"{p.arrival} {p.pod} {p.node} {p.gpus}" for p in found.placements)


def kept_lists() -> dict[str, str]:
    """Return the digests of the public lists on file, by name."""
    return dict(line.split() for line in LISTS_FILE.read_text().splitlines())


def kept() -> dict[int, str]:
    """Return the digests on file, by seed."""
    found = {}
    for line in FILE.read_text().splitlines():
        first, *rest = line.split()
        found |= {int(first) + i: one for i, one in enumerate(rest)}
    return found


def _write(found: list[str]) -> None:
    lines = [
        " ".join([f"{first:4}", *found[first : first + A_LINE]])
        for first in range(0, len(found), A_LINE)
    ]
    FILE.write_text("\n".join(lines) + "\n")


def main() -> int:
    """Renew the digests, or say which differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; name what differs")
    options.add_argument("--show", type=int, metavar="SEED", help="print one run as lines")
    options.add_argument("--step", type=int, default=1, help="check each so many-th run alone")
    chosen = options.parse_args()
    if chosen.show is not None:
        record = play(chosen.show)
        print("\n".join([*record.decided, "--", *record.said]))
        return 0
    seeds = range(0, RUNS, chosen.step)
    with ProcessPoolExecutor() as workers:
        found = list(workers.map(digests, seeds, chunksize=10))
        lists = list(workers.map(list_digest, LISTS)) if openb.directory() else []
    if not chosen.check and chosen.step == 1:
        _write(found)
        if lists:
            pairs = zip(LISTS, lists, strict=True)
            LISTS_FILE.write_text("".join(f"{name} {one}\n" for name, one in pairs))
        return 0
    before_lists = kept_lists()
    wrong = [name for name, one in zip(LISTS, lists, strict=False) if before_lists[name] != one]
    print(f"{len(lists)} lists: {len(wrong)} are placed otherwise {wrong}")
    before = kept()
    pairs = [(seed, one, before.get(seed, "")) for seed, one in zip(seeds, found, strict=True)]
    other = [seed for seed, one, then in pairs if one[:8] != then[:8]]
    words = [seed for seed, one, then in pairs if one[:8] == then[:8] and one != then]
    print(
        f"{len(found)} runs: {len(other)} decide otherwise {other[:20]}; "
        f"{len(words)} say it in other words {words[:20]}"
    )
    return 1 if other or words or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
