"""Verdicts on real lines of logs, culprits of simulated hangs, slow ranks, lines a second."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from tests.support.stuck_worlds import NOBODY, Hang, hang
from tests.support.training_programs import Layout

from bench.figure import Figure
from bench.support.fault_lines import JUDGED, RULES, Labelled
from lockstep.api.rank_evidence import RankSeen
from lockstep.health.core.diagnose import diagnose
from lockstep.health.core.findings import findings_of
from lockstep.health.core.hang import rank_seen, verdict
from lockstep.health.core.reading import lines_of
from lockstep.health.core.stragglers import slow

SLOW = True  # thousands of ranks are simulated
HANGS = 500
STEPS = 20
HOURS = 1000
KEYWORDS = (
    # What is found first decides, as in lists that are written by hand.
    ("out of memory|oom", "user", "stop_and_tell_user"),
    ("xid|ecc|hardware|fallen off|pcie", "hardware", "isolate_node"),
    ("nccl|net/ib|timed out|timeout|connection", "network", "restart_in_place"),
    ("cuda", "hardware", "restart_in_place"),
    ("nfs|i/o|stale|disk", "storage", "pause_job"),
    ("driver|version", "software", "isolate_node"),
    ("error", "user", "stop_and_tell_user"),
)


def run() -> list[Figure]:
    return [*_lines(), *_hangs(), *_large(), *_slow(), _rate()]


def _lines() -> list[Figure]:
    ours = [_ours(one) for one in JUDGED]
    theirs = [_by_keyword(one.text) for one in JUDGED]
    written = [_ours(one) for one in RULES]
    users = [
        one
        for one, (class_, _) in zip((*JUDGED, *RULES), (*ours, *written), strict=True)
        if one.class_ == "user" and class_ == "hardware"
    ]
    return [
        Figure("class of log lines, judged half", _right(JUDGED, ours, 0), "%", limit=90).beside(
            "a keyword list", _right(JUDGED, theirs, 0)
        ),
        Figure("action on log lines, judged half", _right(JUDGED, ours, 1), "%", limit=85).beside(
            "a keyword list", _right(JUDGED, theirs, 1)
        ),
        Figure("class of log lines, rules' half", _right(RULES, written, 0), "%"),
        Figure("action on log lines, rules' half", _right(RULES, written, 1), "%"),
        Figure("user errors blamed on hardware", len(users), "lines", "lower", limit=0),
        Figure("log lines with links, judged half", len(JUDGED), "lines", limit=75),
        Figure("log lines with links", len(JUDGED) + len(RULES), "lines", limit=400),
    ]


def _ours(one: Labelled) -> tuple[str, str]:
    verdict = diagnose(lines_of("log", one.text.encode()))
    return verdict.class_, verdict.action.partition(":")[0]


def _by_keyword(text: str) -> tuple[str, str]:
    for words, class_, action in KEYWORDS:
        if re.search(words, text, re.IGNORECASE):
            return class_, action
    return "unknown", "observe"


def _right(some: Sequence[Labelled], told: Iterable[tuple[str, str]], which: int) -> float:
    wanted = ((one.class_, one.action) for one in some)
    hits = sum(a[which] == b[which] for a, b in zip(wanted, told, strict=True))
    return 100 * hits / len(some)


def _hangs() -> list[Figure]:
    named = wrong = torchs = compared = 0
    for seed in range(HANGS):
        stuck = hang(seed)
        ranks, wanted = _named(stuck), set() if stuck.kind in NOBODY else {*stuck.culprits}
        named += ranks <= wanted and bool(ranks) == bool(wanted)
        wrong += not ranks <= wanted
        if seed % 25 == 0:
            compared += 1
            torchs += _torch(stuck) == {*stuck.culprits}
    figure = Figure("culprits of simulated hangs", 100 * named / HANGS, "%", limit=99)
    return [
        figure.beside("torch's fr_trace", 100 * torchs / compared),
        Figure("hangs with another rank named", wrong, "hangs", "lower", limit=0),
    ]


def _named(stuck: Hang) -> set[int]:
    seen = {rank: rank_seen(dump, rank) for rank, dump in stuck.dumps.items()}
    for rank, said in stuck.answers.items():
        seen[rank] = structs.replace(seen.get(rank, RankSeen(rank=rank)), **said)
    return {*verdict(seen, stuck.layout.world).place.ranks}


def _torch(stuck: Hang) -> set[int]:
    """Return the ranks that torch's own analyser holds to blame: missing ones, or who differ."""
    from argparse import Namespace

    from torch.distributed.flight_recorder.components.builder import build_db

    details: dict[str, Any] = {
        f"{rank}": {**dump, "rank": rank, "host_name": f"host{rank}"}
        for rank, dump in stuck.dumps.items()
    }
    asked = Namespace(
        allow_incomplete_ranks=True,
        just_print_entries=False,
        verbose=False,
        print_stack_trace=False,
        mismatch_cap=10,
        selected_ranks=None,
        pg_filters=None,
    )
    told: list[str] = []
    log = logging.getLogger("Flight Recorder")
    log.handlers = [_Kept(told)]
    log.propagate = False
    with contextlib.suppress(Exception):  # it gives up on some of these dumps
        build_db(details, asked, stuck.dumps[min(stuck.dumps)]["version"])
    # The first that it finds wrong: later pairs are, as it says itself, possibly incorrect.
    for line in told:
        if found := re.findall(r"Culprit rank (\d+)", line):
            return {int(one) for one in found}
        if missing := re.search(r"missing ranks: \{([\d, ]+)\}", line, re.IGNORECASE):
            return {int(one) for one in missing[1].split(",")}
    return set()


class _Kept(logging.Handler):
    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def _large() -> list[Figure]:
    found = []
    for layout, limit in ((Layout(8, 16, 8), 5.0), (Layout(8, 128, 16), 60.0)):
        stuck = hang(1, layout, "stands", ring=20, lost=0.0)
        start = time.process_time()
        right = _named(stuck) == {stuck.culprit}
        seconds = time.process_time() - start
        assert right, "the culprit is another"
        found.append(
            Figure(f"culprit among {layout.world} ranks", seconds, "s", "lower", limit=limit)
        )
    return found


def _slow() -> list[Figure]:
    draw = np.random.default_rng(1)
    hits = 0
    for _ in range(100):
        steps = 0.5 * np.exp(draw.normal(0, 0.03, (STEPS, 64)))
        steps[:, 7] *= 1.1
        told = slow(steps / np.median(steps, axis=1, keepdims=True))
        hits += [one.rank for one in told] == [7]
    # Windows that do not overlap, of steps of 10 s.
    windows = int(HOURS * 3600 / 10 / STEPS)
    alarms = 0
    for _ in range(windows):
        steps = np.exp(draw.normal(0, 0.03, (STEPS, 16)))
        alarms += bool(slow(steps / np.median(steps, axis=1, keepdims=True)))
    return [
        Figure("a rank 10 % slower, named in 20 steps", float(hits), "%", limit=99),
        Figure(f"false alarms in {HOURS} job hours", alarms, "alarms", "lower", limit=1),
    ]


def _rate() -> Figure:
    plain = ["usb 1-1: new high-speed USB device number 4 using xhci_hcd"] * 99
    lines = [*plain, "NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."] * 500
    list(findings_of(lines[-1:], {}))  # the table is compiled once
    start = time.process_time()
    count = sum(1 for _ in findings_of(lines, {}))
    seconds = time.process_time() - start
    assert count == 500, "a line was lost"
    start = time.process_time()
    sum(len(line) for line in lines)
    bare = time.process_time() - start
    share = 100 * seconds / len(lines) * 100_000
    figure = Figure("core at 100,000 kernel log lines a second", share, "%", "lower", limit=10)
    return figure.beside("a bare read of the lines", 100 * bare / len(lines) * 100_000)
