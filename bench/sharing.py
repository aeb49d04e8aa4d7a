"""How true shares of a GPU are, on the stub driver: time on its virtual clock, memory in a race."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.shared_cards import MIB, SharedCards

from bench.figure import Figure, NotMeasured
from bench.support.hami_law import percent
from lockstep.devices.sharing.core.leases import PERIOD
from lockstep.devices.sharing.granting import Granter

ERROR_LIMIT, GONE_LIMIT, OVER_LIMIT = 1.0, 10.0, 0.0
PASS_LIMIT, CAPPED_LIMIT, START_LIMIT = 50.0, 150.0, 5.0
STEP_LIMIT = 5.0
SECONDS = 1.0
STEP = 3.0
"""Milliseconds of a step of a gang that has its cards alone."""
CAPS = (10, 30, 50, 70, 90)
WORK = {
    "run busy_5us {s}": 0.005,
    "run busy_200us {s}": 0.2,
    "run busy_3ms {s}": 3.0,
    "run busy_200ms {s}": 200.0,
    "graph busy_20us 50 {s}": 1.0,
    "copy 1000000 {s}": 0.04,
}
"""What programs do, and milliseconds of the longest piece of it."""
DRAWN = "run draw_5us_200ms {s}"
"""Kernels of one function whose lengths are drawn at random."""
SEEDS = range(1, 7)
RACERS, STARTS, TURNS = 32, 100, 10


def run() -> list[Figure]:
    if shutil.which("cc") is None:
        raise NotMeasured("no C compiler (cc) to build the stub driver with")
    alone = [_errors([cap], [work]) for cap in CAPS for work in WORK]
    pairs = [
        _errors([cap, 100 - cap], [one, other])
        for cap in CAPS
        for one, other in zip(WORK, [*list(WORK)[1:], next(iter(WORK))], strict=True)
    ]
    crowd = [_errors([12] * 8, [work for work, longest in WORK.items() if longest < 100])]
    passed, capped = _cost_of_calls()
    return [
        _worst("share error at 1 s beyond the longest kernel, 1 tenant", alone).beside(
            "HAMi's published law", max(_by_hamis_law())
        ),
        _worst("share error at 1 s beyond the longest kernel, 2 tenants", pairs),
        _worst("share error at 1 s beyond the longest kernel, 8 tenants", crowd),
        _worst(
            "share error at 1 s beyond the last kernel and a window, 5 us to 200 ms at random",
            [_drawn(cap, seed) for cap in CAPS for seed in SEEDS],
        ),
        *(_step(count) for count in (2, 4, 8)),
        _gone(),
        _race(),
        Figure("a call that is handed on, beyond the driver's", passed, "ns", "lower", PASS_LIMIT),
        Figure("a launch at a cap, beyond the driver's", capped, "ns", "lower", CAPPED_LIMIT),
        _starts(),
    ]


@contextmanager
def _cards() -> Iterator[SharedCards]:
    with tempfile.TemporaryDirectory() as directory:
        found = SharedCards(Path(directory))
        try:
            yield found
        finally:
            found.close()


def _worst(name: str, errors: list[float]) -> Figure:
    return Figure(name, max(errors), "points", "lower", ERROR_LIMIT)


def _errors(caps: list[int], work: list[str]) -> float:
    """Return by how many points the worst of some shares is off, less the longest kernel."""
    with _cards() as cards:
        programs = {}
        for number, cap in enumerate(caps):
            cards.share(f"t{number}", compute=cap)
            programs[f"t{number}"] = work[number % len(work)].format(s=SECONDS)
        cards.play(SECONDS, programs)
        longest = max(WORK[work[number % len(work)]] for number in range(len(caps)))
        off = [
            abs(100 * cards.ran(f"t{number}") / (SECONDS * 1e9) - cap)
            for number, cap in enumerate(caps)
        ]
    return max(0.0, max(off) - longest / (SECONDS * 10))


def _by_hamis_law() -> Iterator[float]:
    """Yield by how many points shares are off that HAMi's law holds, for the same kernels."""
    for work, longest in WORK.items():
        for cap in CAPS if work.startswith("run") else ():
            got = percent(cap, int(longest * 1e6), SECONDS)
            yield max(0.0, abs(got - cap) - longest / (SECONDS * 10))


def _drawn(cap: int, seed: int) -> float:
    """Return by how many points a share is off, less its last kernel and its window of a period."""
    os.environ["LOCKSTEP_CUDA_SEED"] = str(seed)
    with _cards() as cards:
        cards.share("one", compute=cap)
        cards.play(SECONDS, {"one": DRAWN.format(s=SECONDS)})
        ran, last = (100 * one / (SECONDS * 1e9) for one in (cards.ran("one"), cards.last("one")))
    del os.environ["LOCKSTEP_CUDA_SEED"]
    return max(0.0, cap - ran, ran - last - cap - cap * PERIOD / 1e9)


def _step(count: int) -> Figure:
    """Return how much longer than twice a step of two gangs takes that share so many cards."""
    with tempfile.TemporaryDirectory() as directory:
        cards = SharedCards(Path(directory), count)
        try:
            for name in ("a", "b"):
                cards.share(name, cards=tuple(range(count)), compute=50)
            what = f"steps busy_2ms meet_{count}_1ms {SECONDS}"
            said = cards.play_gangs(SECONDS + 0.2, {"a": what, "b": what})
        finally:
            cards.close()
    steps = min(number for numbers in said.values() for number in numbers)
    longer = 100 * (SECONDS * 1000 / steps / STEP - 2) / 2
    name = f"step of 2 tenants at 50 % on {count} cards, beyond twice its own"
    return Figure(name, longer, "%", "lower", STEP_LIMIT)


def _gone() -> Figure:
    """Return how long online work waits for offline work to go, at ten moments."""
    found = []
    for turn in range(TURNS):
        with _cards() as cards:
            cards.share("on", compute=80)
            cards.share("off", offline=True)
            moment = 0.4 + 0.0037 * turn
            programs = {"on": f"wait {moment} latency busy_100us", "off": "run busy_1ms 1"}
            cards.play(0.6, programs)
            said, _ = cards.running[0].communicate(timeout=30)
            found.append(int(said.split()[-1]) / 1e6 - 0.1 - 1.0)
    name = f"offline work gone when online work comes, less its kernel (mean of {TURNS})"
    figure = Figure(name, statistics.fmean(found), "ms", "lower", GONE_LIMIT)
    return figure.beside("HAMi", 5000.0, "its loop ticks every 5 s (cmd/vGPUmonitor/feedback.go)")


def _race() -> Figure:
    """Return how many bytes beyond a share racing processes ever held, as the driver saw it."""
    with _cards() as cards:
        cards.share("one", memory=4096)
        for process in [cards.start("one", "fill", "1", "hold") for _ in range(RACERS)]:
            assert process.stdout is not None
            while process.stdout.readline() != "holding\n":
                pass
        over = max(0, cards.most_used() - 4096 * MIB)
    return Figure(f"bytes over the share, {RACERS} processes race", over, "B", "lower", OVER_LIMIT)


def _cost_of_calls() -> tuple[float, float]:
    """Return what a call and a launch cost beyond the driver's own, in nanoseconds."""
    with _cards() as cards:
        cards.share("one", memory=100, compute=100)
        granter, stopped = Granter(cards.shelf.root), threading.Event()
        thread = threading.Thread(target=granter.run_until, args=(stopped.is_set,))
        thread.start()
        try:
            plain = cards.run(None, "cost")[0].split()
            front = cards.run("one", "cost")[0].split()
        finally:
            stopped.set()
            granter.ring()
            thread.join()
    return float(front[1]) - float(plain[1]), float(front[2]) - float(plain[2])


def _starts() -> Figure:
    """Return what the front adds to the start of a process."""

    def taken(cards: SharedCards, name: str | None) -> float:
        began = time.perf_counter()
        cards.run(name, "info")
        return (time.perf_counter() - began) * 1000

    with _cards() as cards:
        cards.share("one", memory=100)
        # By turns: what else this machine does slows both alike.
        both = [(taken(cards, "one"), taken(cards, None)) for _ in range(STARTS)]
        added = statistics.median(front - plain for front, plain in both)
    figure = Figure(f"start of a process through the front ({STARTS})", added, "ms", "lower", 5.0)
    return figure.beside("HAMi", 600.0, "about a minute for hundreds of processes (HAMi#1662)")
