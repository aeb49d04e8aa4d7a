"""Which replica holds how much of a prompt already, and what a request costs where.

A prompt is cut into blocks; the key of a block stands for all of the prompt up to its end. So the
keys of all prompts together are a trie, kept as a set for each replica.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

BLOCK: Final = 256
"""Characters of a block, about 64 tokens."""
MOST_BLOCKS: Final = 512
"""Blocks of one prompt that are looked at."""
HELD: Final = 8192
"""Blocks that a replica is taken to hold, the newest ones."""


def blocks(text: str) -> tuple[int, ...]:
    """Return the keys of the whole blocks of a prompt, the first block first."""
    found: list[int] = []
    before = 0
    for start in range(0, min(len(text), BLOCK * MOST_BLOCKS) - BLOCK + 1, BLOCK):
        before = hash((before, text[start : start + BLOCK]))
        found.append(before)
    return tuple(found)


def prompt(body: Any) -> str:
    """Return the text that a request of OpenAI's protocol begins with, in one piece."""
    if not isinstance(body, Mapping):
        return ""
    parts: list[str] = []
    if tools := body.get("tools"):
        parts.append(str(tools))
    for message in body.get("messages") or []:
        if isinstance(message, Mapping):
            parts.append(f"{message.get('role', '')}:{message.get('content', '')}")
    given = body.get("prompt") or body.get("input") or ""
    parts.append(given if isinstance(given, str) else str(given))
    return "\n".join(parts)


class Prefixes:
    """What each replica is taken to hold of earlier prompts."""

    def __init__(self, held: int = HELD) -> None:
        self._most = held
        self._held: dict[str, OrderedDict[int, None]] = {}
        self.usual = 1.0
        """Blocks that a request had to compute, on average over the latest ones."""

    def held(self, replica: str, keys: Sequence[int]) -> int:
        """Return how many blocks at the beginning of a prompt *replica* holds."""
        there = self._held.get(replica)
        if not there:
            return 0
        count = 0
        for key in keys:
            if key not in there:
                break
            count += 1
        return count

    def cost(self, replica: str, keys: Sequence[int], under_way: int) -> float:
        """Return how many blocks are computed at *replica* until a new request is answered."""
        return len(keys) - self.held(replica, keys) + under_way * self.usual

    def took(self, replica: str, keys: Sequence[int]) -> None:
        """Note that *replica* got a prompt, and holds it from now on."""
        missed = len(keys) - self.held(replica, keys)
        self.usual = 0.95 * self.usual + 0.05 * max(1.0, missed)
        there = self._held.setdefault(replica, OrderedDict())
        for key in reversed(keys):
            there[key] = None
            there.move_to_end(key)
        while len(there) > self._most:
            there.popitem(last=False)

    def forget(self, replica: str) -> None:
        """Note that *replica* is gone."""
        self._held.pop(replica, None)
