"""What processes hold beside their allocations: the least seen once they have settled."""

from __future__ import annotations

import pytest

from lockstep.devices.sharing.core.contexts import SETTLING, Beside, ProcessKey, seen

ONE: ProcessKey = (7, 1, "GPU-0")
LATER = SETTLING + 1
CASES: list[tuple[str, list[tuple[float, int | None]], int | None]] = [
    ("nothing is known of a new process", [(0, 300)], None),
    ("its context counts once it has settled", [(0, 100), (LATER, 300)], 300),
    ("what a pool keeps is not its context", [(0, 0), (LATER, 300), (LATER + 1, 900)], 300),
    ("less is truer", [(0, 0), (LATER, 900), (LATER + 1, 300)], 300),
    ("a look at a process that allocates tells nothing", [(0, 0), (LATER, None)], None),
]


@pytest.mark.parametrize(
    ("looks", "least"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_beside(looks: list[tuple[float, int | None]], least: int | None) -> None:
    known: dict[ProcessKey, Beside] = {}
    for now, amount in looks:
        known = seen(known, {ONE: amount}, now)
    assert known[ONE].least == least
    assert seen(known, {}, LATER) == {}
