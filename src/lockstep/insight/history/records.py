"""What is on record: nodes with their GPUs, and who held which of them; times are Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Purpose = Literal["starting", "running"]
FREE: Final = "free"
"""The purpose of idle devices."""


class ClaimKey(NamedTuple):
    """What makes a claim the same claim, however often it is derived."""

    pod_uid: str
    gpu: int
    purpose: str


class NodeKey(NamedTuple):
    """A node as it was from a time on: it changes when its GPUs, labels or price do."""

    uid: str
    start: float


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A node while it stayed as it was."""

    uid: str
    name: str
    gpus: int
    start: float
    end: float | None = None
    model: str = ""
    spot: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False
    """Whether no object says when it ended, so that ``end`` is when that was noticed."""

    @property
    def key(self) -> NodeKey:
        """Return what it is stored under."""
        return NodeKey(self.uid, self.start)

    def alike(self, other: NodeSpan) -> bool:
        """Say whether *other* is the same but for its times."""
        mine = (self.uid, self.name, self.gpus, self.model, self.spot, dict(self.labels))
        return mine == (
            other.uid,
            other.name,
            other.gpus,
            other.model,
            other.spot,
            dict(other.labels),
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of one GPU, held for one purpose by one pod of a gang.

    ``share`` is the part of the card, in 0..1. ``leaving`` is when the pod was to be gone, where
    its deletion was seen and its end was not.
    """

    pod_uid: str
    gpu: int
    purpose: Purpose
    node: str
    namespace: str
    pod: str
    gang: str
    job: str
    queue: str
    user: str
    share: float
    start: float
    end: float | None = None
    leaving: float | None = None
    guessed: bool = False
    """Whether no object says when it ended, so that ``end`` is when that was noticed."""

    @property
    def key(self) -> ClaimKey:
        """Return what it is stored under."""
        return ClaimKey(self.pod_uid, self.gpu, self.purpose)


class KeptJob(NamedTuple):
    """A job as it was seen last; ``body`` is its record, packed."""

    uid: str
    namespace: str
    name: str
    created: str
    deleted: float | None
    body: bytes


Records = tuple[list[NodeSpan], list[Claim]]


def merge(one: Records, other: Records) -> Records:
    """Return the records of two periods, each once."""
    nodes = {node.key: node for node in (*one[0], *other[0])}
    claims = {claim.key: claim for claim in (*one[1], *other[1])}
    return list(nodes.values()), list(claims.values())
