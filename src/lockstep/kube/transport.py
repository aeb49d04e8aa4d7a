"""The interface between the client and what carries its requests.

A transport knows nothing of Kubernetes. It is small so that another one can stand in: one that
injects faults in tests, or one that is faster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from lockstep.http.answers import Request

__all__ = ["Request", "Response", "Stream", "Transport"]


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer; the names of *headers* are matched without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An answer whose body is read as it comes."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces of any size, until it ends.

        Raises:
            Unreachable: when the connection breaks.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection; may be called twice."""
        ...


class Transport(Protocol):
    """Carries requests to one server over pooled connections."""

    async def send(self, request: Request) -> Response:
        """Send *request* and read the whole answer, of any status.

        Raises:
            Unreachable: when no answer comes; ``acted`` is false where nothing was sent.
        """
        ...

    async def open(self, request: Request) -> Stream:
        """Send *request* and return once the answer's headers are there.

        Raises:
            Unreachable: as for ``send``.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
