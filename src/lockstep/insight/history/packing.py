"""Records as text, for the answer to a question: JSON, compressed, in base64."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import msgspec

from lockstep.insight.history.records import Claim, NodeSpan

Records = tuple[list[NodeSpan], list[Claim]]


def pack(nodes: Sequence[NodeSpan], claims: Sequence[Claim]) -> str:
    """Return the records as text."""
    return base64.b64encode(zlib.compress(msgspec.json.encode((nodes, claims)))).decode()


def unpack(text: str) -> Records:
    """Return the records that *text* holds.

    Raises:
        ValueError: when it holds none.
    """
    try:
        found: Records = msgspec.json.decode(zlib.decompress(base64.b64decode(text)), type=Records)
    except zlib.error as error:
        raise ValueError(f"not compressed: {error}") from None
    return found


def merge(one: Records, other: Records) -> Records:
    """Return the records of two periods, each once."""
    nodes = {node.key: node for node in (*one[0], *other[0])}
    claims = {claim.key: claim for claim in (*one[1], *other[1])}
    return list(nodes.values()), list(claims.values())
