"""Which revision, and which of its replicas, gets a request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from lockstep.api.serving import Match
from lockstep.serve.core.prefix import Prefixes


class Loaded(Protocol):
    """What has a number of requests under way."""

    in_flight: int


class Named(Loaded, Protocol):
    """What has an identity beside its load."""

    uid: str


R = TypeVar("R", bound=Loaded)
N = TypeVar("N", bound=Named)


class Turns:
    """Deals requests to revisions so that each gets exactly its share (smooth weighted turns).

    After any number of requests, each revision's count differs from its share by less than one
    for two revisions, and by less than the number of revisions for more.
    """

    def __init__(self) -> None:
        self._credit: dict[str, int] = {}

    def take(self, weights: Mapping[str, int]) -> str | None:
        """Return whose turn it is; none where no weight is above zero."""
        if len(weights) == 1:
            return next((name for name, weight in weights.items() if weight), None)
        credit = {name: self._credit.get(name, 0) + w for name, w in weights.items() if w}
        if not credit:
            return None
        first = max(credit, key=lambda name: (credit[name], name))
        credit[first] -= sum(weights.values())
        self._credit = credit
        return first


def least_loaded(replicas: Sequence[R], limit: int, turn: int) -> R | None:
    """Return a replica with the fewest requests under way, alike ones in turn.

    None where all have *limit* (0: no limit).
    """
    best: R | None = None
    count = len(replicas)
    for step in range(count):
        one = replicas[(turn + step) % count]
        if (limit == 0 or one.in_flight < limit) and (
            best is None or one.in_flight < best.in_flight
        ):
            best = one
    return best


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known of a request beside its route."""

    revision: str = ""
    """The revision that its headers choose; empty where the weights do."""
    session: str = ""
    """Requests with the same one go to the same replica."""
    keys: tuple[int, ...] = ()
    """Blocks of its prompt, as ``prefix.blocks`` gives them."""


NO_HINTS: Final = Hints()


def by_session(replicas: Sequence[N], session: str, limit: int) -> N | None:
    """Return the replica that *session* has; of those with room, the same as long as it is there.

    Where a replica comes or goes, only the sessions that it gets or had move.
    """
    free = [one for one in replicas if limit == 0 or one.in_flight < limit]

    def rank(one: N) -> bytes:
        return hashlib.blake2b(f"{session}\0{one.uid}".encode(), digest_size=8).digest()

    return max(free, key=rank, default=None)


def by_prefix(
    replicas: Sequence[N], keys: Sequence[int], prefixes: Prefixes, limit: int
) -> N | None:
    """Return the replica at which a prompt is answered first, by what it holds and has to do."""
    free = [one for one in replicas if limit == 0 or one.in_flight < limit]
    return min(
        free,
        key=lambda one: (prefixes.cost(one.uid, keys, one.in_flight), one.in_flight, one.uid),
        default=None,
    )


def revision_of(matches: Sequence[Match], headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the revision that the first fitting match chooses; empty where none fits."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    cookies = dict(
        part.strip().partition("=")[::2] for part in found.get("cookie", "").split(";") if part
    )
    for one in matches:
        there = cookies.get(one.cookie) if one.cookie else found.get(one.header.lower())
        if there is not None and (not one.value or there.strip() == one.value):
            return one.revision
    return ""
