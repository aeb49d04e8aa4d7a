"""Time of a shared card that no pod was metered for, and gaps of the front itself."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.devices.sharing.core.exposition import Use
from lockstep.devices.sharing.core.gaps import Gap, gaps
from lockstep.devices.sharing.core.unmetered import LASTING, Seen, Unmetered

CLEAN, DIRTY, OURS = Seen(90, 88), Seen(90, 60), Seen(90, 60, gap=True)
HUGE = 2**64 - 1


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([(0, DIRTY), (LASTING - 1, DIRTY)], []),
        ([(0, DIRTY), (LASTING, DIRTY)], ["card"]),
        ([(0, DIRTY), (5, CLEAN), (6, DIRTY), (LASTING + 1, DIRTY)], []),
        ([(0, DIRTY), (LASTING, DIRTY), (LASTING + 1, DIRTY)], ["card"]),
        ([(0, CLEAN), (100, CLEAN)], []),
        ([(0, OURS), (LASTING, OURS), (5 * LASTING, OURS)], []),
        ([(0, DIRTY), (LASTING - 1, OURS), (LASTING, DIRTY)], []),
        ([(0, OURS), (1, DIRTY), (LASTING + 1, DIRTY)], ["card"]),
    ],
    ids=[
        "not yet",
        "long enough",
        "it began anew",
        "told once",
        "nothing unmetered",
        "while the front has gaps",
        "a gap begins it anew",
        "after the last gap",
    ],
)
def test_unmetered_time_is_told_once_it_lasts(
    looks: list[tuple[float, Seen]], told: list[str]
) -> None:
    watch, found = Unmetered(), []
    for now, seen in looks:
        found += watch.look({"card": seen}, now)
    assert found == told


def use(unheld: int = 0, passed: int = 0, unknown: int = 0, stranger: str = "") -> Use:
    return Use(
        namespace="ns",
        pod="p",
        container="main",
        uuid="GPU-1",
        number=0,
        limit=0,
        compute=30,
        policy="fixed",
        memory=0,
        busy=0,
        throttled=0,
        refused=0,
        unknown=unknown,
        fallback=0,
        unheld=unheld,
        passed=passed,
        stranger=stranger,
    )


@pytest.mark.parametrize(
    ("before", "now", "grown"),
    [
        pytest.param(use(), use(), None, id="all is held"),
        pytest.param(use(unheld=3), use(unheld=3), None, id="none since the last look"),
        pytest.param(use(unheld=3), use(unheld=5), {"unheld": 2}, id="not measured"),
        pytest.param(use(passed=1), use(passed=2), {"passed": 1}, id="passed the gate"),
        pytest.param(use(passed=9), use(passed=2), None, id="the container began anew"),
        pytest.param(None, use(unheld=5), None, id="first look"),
        pytest.param(
            use(unknown=1, stranger="cuNew"),
            use(unknown=1, stranger="cuNew"),
            {"unknown": 1, "call": "cuNew"},
            id="an unknown call stays",
        ),
        pytest.param(
            None, use(unknown=1, stranger="x\n`rm`"), {"unknown": 1}, id="no name of a call"
        ),
        pytest.param(use(), use(unheld=HUGE), {"unheld": HUGE}, id="a hostile count"),
    ],
)
def test_gaps_are_what_the_front_did_not_hold(
    before: Use | None, now: Use, grown: dict[str, Any] | None
) -> None:
    known = {before.key: before} if before else {}
    wanted = [] if grown is None else [Gap(now.key, **grown)]
    assert gaps(known, [now]) == wanted


@pytest.mark.parametrize(
    ("gap", "what", "why"),
    [
        ({"unheld": 2}, "2 launches on GPU GPU-1 were not measured", "could not record an event"),
        ({"passed": 1}, "1 launches on GPU GPU-1 passed the gate", "may wait for them"),
        ({"unknown": 4, "call": "cuNew"}, "4 calls of the driver", "the last is cuNew"),
    ],
)
def test_a_pod_is_told_what_why_and_what_to_do(gap: dict[str, Any], what: str, why: str) -> None:
    [message] = Gap(("ns", "p", "main", "GPU-1"), **gap).messages.values()
    for part in ("container main: ", what, why, "`lockstep.dev/gpu-isolation: whole`"):
        assert part in message
