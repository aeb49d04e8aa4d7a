"""What a process says about itself: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lockstep.http.message import Request, Response
from lockstep.kube.listener import answer
from lockstep.kube.peers import is_trusted

Problems = Callable[[], list[str]]
"""What keeps the process from being ready; empty when it is."""

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_OK: Final = answer(200, b"ok\n")


@dataclass(frozen=True, slots=True)
class Health:
    """The answers, to the process's own user and to everybody.

    That there is an answer at all says that the event loop runs, which is what /healthz is for.
    """

    problems: Problems
    metrics: Callable[[], bytes]

    async def tell(self, request: Request) -> Response:
        """Answer its own user with the reasons for which it is not ready, and with its metrics.

        Other users of the machine get what a kubelet gets: reasons and metrics name namespaces.
        """
        if not is_trusted(request.peer):
            return await self.probe(request)
        if request.path == "/readyz":
            problems = self.problems()
            text = "".join(f"{problem}\n" for problem in problems).encode()
            return answer(503, text) if problems else _OK
        if request.path == "/metrics":
            return self.expose()
        if request.path == "/healthz":
            return _OK
        return answer(404, b"there are /healthz, /readyz and /metrics\n")

    async def probe(self, request: Request) -> Response:
        """Answer a kubelet: yes or no, and nothing that strangers could use."""
        if request.path == "/readyz":
            return answer(503, b"not ready\n") if self.problems() else _OK
        if request.path == "/healthz":
            return _OK
        return answer(404, b"there are /healthz and /readyz\n")

    def expose(self) -> Response:
        """Return the metrics."""
        return answer(200, self.metrics(), EXPOSITION)
