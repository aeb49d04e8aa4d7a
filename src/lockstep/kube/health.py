"""What a process says about itself: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lockstep.kube.listener import Answer, Request

Problems = Callable[[], list[str]]
"""What keeps the process from being ready; empty when it is."""

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_OK: Final = Answer(200, b"ok\n")


@dataclass(frozen=True, slots=True)
class Health:
    """The answers, to those on this machine and to everybody.

    That there is an answer at all says that the event loop runs, which is what /healthz is for.
    """

    problems: Problems
    metrics: Callable[[], bytes]

    async def tell(self, request: Request) -> Answer:
        """Answer on all three paths, with the reasons for which the process is not ready."""
        if request.path == "/readyz":
            problems = self.problems()
            text = "".join(f"{problem}\n" for problem in problems).encode()
            return Answer(503, text) if problems else _OK
        if request.path == "/metrics":
            return self.expose()
        if request.path == "/healthz":
            return _OK
        return Answer(404, b"there are /healthz, /readyz and /metrics\n")

    async def probe(self, request: Request) -> Answer:
        """Answer a kubelet: yes or no, and nothing that strangers could use."""
        if request.path == "/readyz":
            return Answer(503, b"not ready\n") if self.problems() else _OK
        if request.path == "/healthz":
            return _OK
        return Answer(404, b"there are /healthz and /readyz\n")

    def expose(self) -> Answer:
        """Return the metrics."""
        return Answer(200, self.metrics(), EXPOSITION)
