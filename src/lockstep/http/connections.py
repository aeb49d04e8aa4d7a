"""How many connections a server has at most, in all and from one address."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Protocol


class Connection(Protocol):
    """One of them."""

    closed: asyncio.Future[None]
    """Done once the connection is gone."""

    def close(self) -> None:
        """End it after the answer that is under way."""

    def drop(self) -> None:
        """End it at once."""


class Connections:
    """The open connections of a server.

    Those over which no credential came yet are few: when there are too many, the oldest of them
    goes, so that a client that opens connections and says nothing keeps no other client out.
    """

    def __init__(self, *, most: int = 8192, per_peer: int = 6144, strangers: int = 512) -> None:
        self._most, self._per_peer, self._strangers = most, per_peer, strangers
        self._open: dict[Connection, str] = {}
        self._unknown: dict[Connection, str] = {}
        self._peers: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open))

    def add(self, connection: Connection, address: str, *, known: bool) -> bool:
        """Take in a connection from *address*; return whether there is room for it."""
        if len(self._open) >= self._most or self._peers[address] >= self._per_peer:
            return False
        self._open[connection] = address
        self._peers[address] += 1
        if not known:
            self._unknown[connection] = address
            self._bound_strangers()
        return True

    def _bound_strangers(self) -> None:
        if len(self._unknown) > self._strangers:
            oldest = next(iter(self._unknown))
            self.remove(oldest)
            oldest.drop()

    def know(self, connection: Connection) -> None:
        """Note that a credential came over a connection."""
        self._unknown.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is gone."""
        address = self._open.pop(connection, None)
        self._unknown.pop(connection, None)
        if address is not None:
            self._peers[address] -= 1
            if not self._peers[address]:
                del self._peers[address]
