"""What is said where the scheduler never comes to an end of its decisions."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 8
"""Jobs that an error names; of the others it tells how many there are."""


class NotConverged(RuntimeError):
    """The decisions at one moment do not come to an end."""

    def __init__(self, moment: float, rounds: int, jobs: Sequence[str]) -> None:
        named = ", ".join(jobs[:NAMED]) or "none"
        more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
        super().__init__(
            f"after {rounds} rounds of decisions at {moment:g} s there is still something to "
            f"decide; the last round was about: {named}{more}"
        )
        self.moment = moment
        """Seconds after the beginning of what was played."""
        self.jobs = tuple(jobs)
        """The jobs about which the last round decided something."""
