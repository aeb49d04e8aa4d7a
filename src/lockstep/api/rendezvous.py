"""The rendezvous of a job: the ranks its controller assigns, and what its launchers report.

Both are small documents in JSON. The controller writes the world into a ConfigMap; each launcher
answers in the annotation of a Lease. Launchers read and write them with the standard library alone
(``lockstep.train``).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from lockstep.api.copies import Copies
from lockstep.api.probes import Sheet
from lockstep.api.rank_evidence import RankSeen
from lockstep.api.wire import Wire

WORLD_SUFFIX: Final = "-world"
WORLD_KEY: Final = "world"
"""Key of the ConfigMap under which the world stands."""
CA_KEY: Final = "ca.crt"
"""Key of the ConfigMap under which stands whom launchers trust to be the API server."""
LONGEST_REPORT: Final = 64 << 10

Phase = Literal["Gather", "Run", "Leave"]


class Part(Wire, frozen=True):
    """Pods of one role, in the order of the ranks."""

    role: str
    pods: int
    processes: int


class World(Wire, frozen=True):
    """Who belongs together and what all of them do now."""

    generation: int
    phase: Phase
    parts: list[Part]
    master: Annotated[str, Meta(description="Host name of the pod that holds rank 0.")]
    port: int
    ranks: dict[str, int] = {}
    """Pods whose place is not that of their name."""
    resume: int | None = None
    """Step that everybody's memory holds whole; none: from start."""
    sources: list[str] = []
    """Launchers (host:port) that hold that step for ranks that lack it."""
    stored: bool = False
    """That step is read from the job's directory for checkpoints."""
    restarts: int = 0
    replicated: bool = False
    """All ranks hold the same parameters, but for what is spread."""
    alike: bool = False
    """Their own parts are alike, too, but for random numbers."""
    own: bool = False
    """Each rank goes on from its own copy, and from no other rank's."""
    peers: list[str] = []
    """Launchers (host:port) in the order of their ranks, where each keeps a copy of what another's
    ranks hold.
    """
    asked: bool = False
    """Launchers tell what their ranks wait in: one may hang."""


class Snapshot(Wire, frozen=True):
    """A whole copy of one rank's state in its launcher's memory."""

    local: Annotated[int, Meta(description="Rank of the pod; -1: of another pod, kept for it.")]
    step: int
    generation: int = 0
    bytes: int = 0
    rank: Annotated[int | None, Meta(description="Whose state it is, of all ranks.")] = None
    size: Annotated[int | None, Meta(description="How many ranks there were.")] = None
    sharded: Annotated[bool, Meta(description="Whether it holds parts of tensors.")] = False
    own: Annotated[bool, Meta(description="Whether it lacks what all ranks hold alike.")] = False


class Stored(Wire, frozen=True):
    """A whole checkpoint in the job's directory."""

    step: int
    size: Annotated[int, Meta(description="Ranks that wrote it.")]
    free: bool = False
    """Whether any number of ranks can go on from it."""


class First(Wire, frozen=True):
    """A checksum of one rank's state after its first step in the generation."""

    local: int
    step: int
    sum: Annotated[int, Meta(description="Of what data parallelism keeps alike in all ranks.")]
    own: Annotated[int, Meta(description="Of everything else but random numbers.")] = 0


class Ended(Wire, frozen=True):
    """How a rank ended that should not have."""

    rank: int
    at: float
    code: int = 0
    signal: int = 0
    line: str = ""
    """The last that it wrote to its standard error."""
    oom: bool = False
    """Whether the kernel killed a process of its cgroup for want of memory meanwhile."""


class Save(Wire, frozen=True):
    """The newest step that all ranks of a pod have saved."""

    step: int
    at: float


class LossFigures(Wire, frozen=True):
    """How the loss of one rank goes, as its own ``backward`` is called on it."""

    last: float | None = None
    bad: Annotated[int | None, Meta(description="First step whose loss is no number.")] = None
    high: Annotated[int | None, Meta(description="Step since which it stays far too high.")] = None
    usual: Annotated[float | None, Meta(description="What it was before that.")] = None


class RankFigures(Wire, frozen=True):
    """What a rank's telemetry shows; the times are those of its last 128 steps."""

    local: int
    pid: Annotated[int, Meta(description="Its process, as the pod numbers it.")] = 0
    steps: Annotated[int, Meta(description="Optimizer steps since the rank was started.")] = 0
    begun: int | None = None
    """Steps that its state held when it was started, if known."""
    at: Annotated[float | None, Meta(description="When the last one ended, Unix time.")] = None
    seconds: Annotated[float, Meta(description="Half of the steps took no longer.")] = 0.0
    p99: Annotated[float, Meta(description="99 of 100 steps took no longer.")] = 0.0
    data: Annotated[float, Meta(description="Share of the time that was waited for data.")] = 0.0
    busy: Annotated[list[float], Meta(max_length=32)] = []
    """Seconds of its last steps before its first collective."""
    loss: LossFigures | None = None
    gpu_memory: Annotated[int, Meta(description="Most bytes that torch held of its GPU.")] = 0
    served: Annotated[bool, Meta(description="Whether torch's worker server listens.")] = False
    suspect: bool = False
    """Whether its present step takes so long that it may hang."""


class Report(Wire, frozen=True):
    """What a launcher tells of itself and of its ranks."""

    uid: Annotated[str, Meta(description="Of the pod that it runs in; others are not believed.")]
    generation: int = 0
    state: Literal["Idle", "Ready", "Running", "Done", "Failed"] = "Idle"
    step: int | None = None
    snapshots: list[Snapshot] = []
    stored: list[Stored] = []
    """With Ready: steps in the directory for checkpoints."""
    saved: Save | None = None
    trouble: Annotated[str, Meta(description="Why a step could not be saved.")] = ""
    notice: Annotated[str, Meta(description="What says that its machine goes away soon.")] = ""
    ended: Ended | None = None
    first: list[First] = []
    ranks: list[RankFigures] = []
    first_rank: Annotated[int | None, Meta(description="The rank of its first process.")] = None
    hang: list[RankSeen] = []
    """What the ranks wait in, where that was asked."""
    probes: Annotated[list[Sheet], Meta(description="Where the time of its ranks goes.")] = []
    sharded: Annotated[bool, Meta(description="Whether its ranks hold parts of tensors.")] = False
    kept: int | None = None
    """Newest step that it keeps for the ranks of another pod."""
    copies: Copies | None = None
    """The copies of its ranks' states in its memory."""
    address: Annotated[str, Meta(description="Where it hands over copies, as host:port.")] = ""
