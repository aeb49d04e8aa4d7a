"""Gaps of the front: what it could not hold in a share, by its own fault and not the pod's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.api import names
from lockstep.devices.sharing.core.exposition import Key, Use

NOT_HELD: Final = "ShareNotHeld"
"""Reason of the event that tells a pod."""
_CALL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_REMEDY: Final = (
    "No card is fenced for it. See `lockstep top shares`; to keep it from others, submit the pod "
    f"again with the annotation `{names.GPU_ISOLATION_ANNOTATION}: whole`."
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Launches and calls of one share that its front could not hold since the last look."""

    share: Key
    unheld: int = 0
    """Launches whose completion could not be measured."""
    passed: int = 0
    """Launches let through the gate because running work may depend on them."""
    unknown: int = 0
    """Calls of the driver that the front does not know, since the share began."""
    call: str = ""
    """The last of these."""

    @property
    def messages(self) -> dict[str, str]:
        """Return in words what was not held, by counter."""
        of = f"container {self.share[2]}"
        uuid = self.share[3]
        named = f", the last is {self.call}" if self.call else ""
        found = {
            "unheld": (
                f"{of}: {self.unheld} launches on GPU {uuid} were not measured, because the front "
                f"could not record an event behind them. {_REMEDY}"
            ),
            "passed": (
                f"{of}: {self.passed} launches on GPU {uuid} passed the gate outside the share's "
                f"turn, because running work may wait for them. {_REMEDY}"
            ),
            "unknown": (
                f"{of}: the program looked up {self.unknown} calls of the driver that the front "
                f"neither counts nor holds{named}, because they are newer than its table. {_REMEDY}"
            ),
        }
        return {name: text for name, text in found.items() if getattr(self, name)}


def gaps(before: Mapping[Key, Use], uses: Iterable[Use]) -> list[Gap]:
    """Return the gaps of shares since the look that found *before*.

    Launches count while they grow. An unknown call counts for as long as its share lasts: a program
    looks it up once and may call it at any time. What a share of a new container says counts from
    the next look on. Programs write the counters and the name, so neither is trusted.
    """
    found = []
    for one in uses:
        last = before.get(one.key, one)
        gap = Gap(
            share=one.key,
            unheld=max(0, one.unheld - last.unheld),
            passed=max(0, one.passed - last.passed),
            unknown=one.unknown,
            call=one.stranger if _CALL.fullmatch(one.stranger) else "",
        )
        if gap.unheld or gap.passed or gap.unknown:
            found.append(gap)
    return found
