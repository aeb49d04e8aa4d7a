"""Time of a shared card that nobody was metered for."""

from __future__ import annotations

import pytest

from lockstep.devices.sharing.core.unmetered import LASTING, Seen, Unmetered

CLEAN, DIRTY = Seen(90, 88), Seen(90, 60)


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([(0, DIRTY), (LASTING - 1, DIRTY)], []),
        ([(0, DIRTY), (LASTING, DIRTY)], ["card"]),
        ([(0, DIRTY), (5, CLEAN), (6, DIRTY), (LASTING + 1, DIRTY)], []),
        ([(0, DIRTY), (LASTING, DIRTY), (LASTING + 1, DIRTY)], ["card"]),
        ([(0, CLEAN), (100, CLEAN)], []),
    ],
    ids=["not yet", "long enough", "it began anew", "told once", "nothing unmetered"],
)
def test_unmetered_time_is_told_once_it_lasts(
    looks: list[tuple[float, Seen]], told: list[str]
) -> None:
    watch, found = Unmetered(), []
    for now, seen in looks:
        found += watch.look({"card": seen}, now)
    assert found == told
