"""How many examples a property draws: two fifths of them at the gate, all in the search."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "gate")
"""``gate`` draws the same examples in every run; ``search``, for `make soak`, draws new ones."""
_LEAST = 20


def examples(most: int) -> int:
    """Return how many of at most this many examples the present profile draws, 160 of 400."""
    return most if PROFILE == "search" else max(min(most, _LEAST), most * 2 // 5)
