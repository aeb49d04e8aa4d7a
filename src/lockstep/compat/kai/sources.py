"""KAI's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.kai import queue
from lockstep.compat.kai.kinds import QUEUE
from lockstep.compat.podgroups import KAI_SOURCE
from lockstep.compat.translation import Source, translating

SOURCES: Final = (KAI_SOURCE, Source(QUEUE, translating(queue.to_native), queue.status_of))
