"""Simulated training in tensor, data and pipeline groups that hangs, and the dumps that it leaves.

Dumps have the shape of torch's flight recorder: a ring that may have wrapped, times of clocks that
differ, and some of them missing.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from tests.support.training_programs import Layout, Op, program

Json = dict[str, Any]
Key = tuple[Any, int]
"""A group, or two ranks of one, and a sequence number."""
Kind = Literal[
    "stands",
    "loader",
    "checkpoint",
    "lock",
    "ends",
    "never",
    "pair",
    "dead",
    "node",
    "stopped",
    "skips",
    "extra",
    "early",
    "group",
    "swaps",
    "shape",
    "dtype",
    "other",
    "barrier",
    "send",
    "recv",
    "device",
    "link",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOBODY: tuple[Kind, ...] = ("link",)
"""Kinds of which no dump can tell the culprit: to be silent is right."""
NO_DUMP: Final = ("dead", "node", "stopped")
ANYWHERE: Final = (*NO_DUMP, "stands", "loader", "lock", "ends", "never", "pair", "link")
"""Kinds that do not depend on the operation before which they happen."""


@dataclass
class Hang:
    """A world that hangs: who did it, how, and what is left of it."""

    layout: Layout
    culprits: tuple[int, ...]
    kind: Kind
    dumps: dict[int, Json] = field(default_factory=dict)
    answers: dict[int, dict[str, str]] = field(default_factory=dict)
    """What launchers say of ranks besides: as the fields of a ``RankSeen``."""

    @property
    def culprit(self) -> int:
        return self.culprits[0]


@dataclass
class _World:
    layout: Layout
    culprits: tuple[int, ...]
    kind: Kind
    steps: int
    at: int
    """Index of the culprit's operation in the last step that goes wrong."""
    first_seq: int
    groups: dict[str, list[int]] = field(init=False)
    log: dict[int, list[tuple[Op, int, str]]] = field(default_factory=lambda: defaultdict(list))
    arrived: dict[Key, dict[int, Op]] = field(default_factory=lambda: defaultdict(dict))
    done: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.groups = self.layout.groups()

    @property
    def culprit(self) -> int:
        return self.culprits[0]

    def script(self, rank: int) -> list[Op]:
        ops = [op for _ in range(self.steps) for op in program(self.layout, rank)]
        if rank not in self.culprits or self.kind in ("device", "link"):
            return ops
        n = len(program(self.layout, rank))
        at = (self.steps - 1) * n + min(self.at, n - 1)
        return _edited(self.kind, ops, at, n, self.layout.names(rank))

    def run(self) -> None:
        """Let all ranks go on until none can."""
        scripts = {rank: self.script(rank) for rank in range(self.layout.world)}
        place = dict.fromkeys(scripts, 0)
        seqs: dict[int, dict[Any, int]] = {r: defaultdict(lambda: self.first_seq) for r in scripts}
        waiting: dict[Key, list[int]] = defaultdict(list)
        ready = deque(scripts)
        stuck = self._stuck_on_device(scripts)
        while ready:
            rank = ready.popleft()
            while place[rank] < len(scripts[rank]):
                op = scripts[rank][place[rank]]
                lane = (
                    (op.group, min(rank, op.peer), max(rank, op.peer))
                    if op.peer is not None
                    else op.group
                )
                seqs[rank][lane] += 1
                key = (lane, seqs[rank][lane])
                self.log[rank].append((op, seqs[rank][lane], ""))
                self.arrived[key][rank] = op
                place[rank] += 1
                for ended in self._end(key, stuck):
                    ready.extend(waiting.pop(ended, ()))
                if op.waits and key not in self.done:
                    waiting[key].append(rank)
                    break

    def _end(self, key: Key, stuck: Key | None) -> Iterator[Key]:
        """End what all have come to, in the order of each lane; yield what that was."""
        lane, seq = key
        while (lane, seq - 1) in self.done or seq == self.first_seq + 1:
            there = self.arrived.get((lane, seq), {})
            need = 2 if isinstance(lane, tuple) else len(self.groups[lane])
            alike = isinstance(lane, tuple) or len({_way(op) for op in there.values()}) == 1
            if len(there) < need or not alike or (lane, seq) == stuck:
                return
            self.done.add((lane, seq))
            yield lane, seq
            seq += 1

    @property
    def hangs(self) -> bool:
        return any(key not in self.done for key in self.arrived)

    def _stuck_on_device(self, scripts: dict[int, list[Op]]) -> Key | None:
        if self.kind not in ("device", "link"):
            return None
        n = len(program(self.layout, self.culprit))
        at = (self.steps - 1) * n + self.at
        one = scripts[self.culprit][at]
        before = sum(
            o.group == one.group and o.peer is None for o in scripts[self.culprit][: at + 1]
        )
        return (one.group, self.first_seq + before)

    def dump(self, rank: int, ring: int, clock: int) -> Json:
        entries: list[Json] = []
        status: dict[str, list[int]] = {}
        exchanged: dict[str, int] = defaultdict(int)
        for number, (op, seq, _) in enumerate(self.log[rank]):
            p2p = op.peer is not None
            lane: Any = (
                (op.group, min(rank, op.peer), max(rank, op.peer))
                if op.peer is not None
                else op.group
            )
            done, many = (lane, seq) in self.done, len(self.groups[op.group])
            begun = done or (lane, seq - 1) in self.done or seq == self.first_seq + 1
            begun = begun and not (self.kind == "device" and rank in self.culprits and not done)
            state = "completed" if done else "started" if begun else "scheduled"
            exchanged[op.group] += p2p
            if not p2p:
                far = status.setdefault(op.group, [0, 0, 0])
                far[0] = seq
                far[1] = seq if begun else far[1]
                far[2] = seq if done else far[2]
            if number < len(self.log[rank]) - ring:
                continue  # overwritten
            entries.append(
                {
                    "record_id": number,
                    "pg_id": int(op.group),
                    "process_group": (op.group, "default_pg" if op.group == "0" else "undefined"),
                    "collective_seq_id": 0 if p2p else seq,
                    "p2p_seq_id": exchanged[op.group],
                    "op_id": number,
                    "profiling_name": f"nccl:{self._named(op, rank)}",
                    "input_sizes": [[op.size * (many if op.name == "reduce_scatter" else 1)]],
                    "input_dtypes": [op.dtype],
                    "output_sizes": [[op.size * (many if op.name == "all_gather" else 1)]],
                    "output_dtypes": [op.dtype],
                    "time_created_ns": 10**18 + clock + number * 1000,
                    "time_discovered_started_ns": None,
                    "time_discovered_completed_ns": None,
                    "duration_ms": None,
                    "timeout_ms": 600000,
                    "state": state,
                    "retired": done,
                    "is_p2p": p2p,
                    "frames": [],
                }
            )
        mine = self._mine(rank)
        return {
            "version": "2.10",
            "entries": entries,
            "pg_config": {
                name: {
                    "name": name,
                    "desc": "default_pg" if name == "0" else "undefined",
                    "ranks": str(m),
                }
                for name, m in mine.items()
            },
            "pg_status": {
                name: {
                    "last_enqueued_collective": far[0],
                    "last_started_collective": far[1],
                    "last_completed_collective": far[2],
                }
                for name, far in status.items()
            },
        }

    def _mine(self, rank: int) -> dict[str, list[int]]:
        return {name: self.groups[name] for name in ("0", *self.layout.names(rank))}

    def _named(self, op: Op, rank: int) -> str:
        if op.peer is None:
            return op.name
        order = self.groups[op.group]
        mine, theirs = order.index(rank), order.index(op.peer)
        return f"send {mine}->{theirs}" if op.name == "send" else f"recv {mine}<-{theirs}"


def _way(op: Op) -> tuple[str, int, str]:
    return (op.name, 0 if op.name == "all_to_all" else op.size, op.dtype)


def _edited(kind: Kind, ops: list[Op], at: int, n: int, names: tuple[str, ...]) -> list[Op]:
    """Return what a culprit does in place of *ops*, of which step has *n* and one is *at*."""
    before, one, after = ops[:at], ops[at], ops[at + 1 :]
    if kind == "never":
        return []
    if kind == "ends":
        return ops[:-n]
    if kind in ANYWHERE or kind == "checkpoint":
        return before
    if kind in ("skips", "send", "recv"):
        return before + after
    if kind == "extra":
        return [*before, one, one, *after]
    if kind == "early":
        return [*before, ops[-1]]
    if kind == "swaps":
        return [*before, after[0], one, *after[1:]]
    other = names[1] if one.group == names[0] else names[0]
    instead: dict[str, dict[str, Any]] = {
        "shape": {"size": one.size + 1},
        "dtype": {"dtype": "BFloat16"},
        "other": {"name": "broadcast"},
        "barrier": {"name": "all_reduce_barrier", "size": 1},
        "group": {"group": other},
    }
    return [*before, replace(one, **instead[kind]), *after]


def _fits(kind: Kind, ops: list[Op], n: int) -> bool:
    """Say whether *kind* can happen at operation *n* of a step."""
    op = ops[n]
    if kind in ANYWHERE:
        return kind not in ("device", "link") or op.peer is None
    if kind == "checkpoint":
        return n == len(ops) - 1
    if kind in ("send", "recv"):
        return op.name == kind
    if op.peer is not None or (kind == "shape" and op.name == "all_to_all"):
        return False
    if kind == "swaps":
        return n + 1 < len(ops) and _swaps(op, ops[n + 1])
    return kind != "early" or n < len(ops) - 1


def _culprits(kind: Kind, layout: Layout, draw: random.Random) -> tuple[int, ...]:
    rank = draw.randrange(layout.world)
    if kind == "checkpoint":
        return (0,)
    if kind == "node":
        first = rank // layout.tensor * layout.tensor
        return tuple(range(first, first + layout.tensor))
    if kind == "pair":
        return (rank, (rank + layout.world // 2) % layout.world)
    return (rank,)


def _said(kind: Kind) -> dict[str, str]:
    """Return what a launcher says of the culprit besides."""
    return {
        "stopped": {"answers": "stopped"},
        "lock": {"answers": "trace"},
        "loader": {"answers": "all", "at": "dataloader.py:1 in _try_get_data"},
    }.get(kind, {})


def hang(
    seed: int,
    layout: Layout | None = None,
    kind: Kind | None = None,
    *,
    ring: int | None = None,
    lost: float = 0.02,
) -> Hang:
    """Return a world that hangs in a way drawn by *seed*."""
    draw = random.Random(seed)  # noqa: S311 - to be drawn again
    layout = layout or _layout(draw)
    chosen: Kind = draw.choice(KINDS) if kind is None else kind
    if chosen in ("send", "recv") and layout.pipeline == 1:
        layout = replace(layout, pipeline=2)
    culprits = _culprits(chosen, layout, draw)
    ops = program(layout, culprits[0])
    fit = [n for n in range(len(ops)) if _fits(chosen, ops, n)]
    if not fit:
        return hang(seed + 1_000_003, layout, chosen, ring=ring, lost=lost)
    first = 0 if chosen == "never" else draw.randrange(100_000)
    world = _World(layout, culprits, chosen, 3, draw.choice(fit), first)
    world.run()
    if not world.hangs:
        return hang(seed + 1_000_003, layout, chosen, ring=ring, lost=lost)
    # A ring that has lost who sent and who did not leaves nothing to tell these two by.
    ring = ring or draw.choice((20, 2000) if chosen in ("send", "recv") else (6, 8, 20, 2000))
    silent = set(culprits) if chosen in NO_DUMP else set()
    others = [rank for rank in range(layout.world) if rank not in culprits]
    # One without a dump would be to blame for what a link does.
    silent |= set(draw.sample(others, round(lost * len(others) * (chosen not in NOBODY))))
    dumps = {
        rank: world.dump(rank, ring, draw.randrange(-(10**9), 10**9))
        for rank in range(layout.world)
        if rank not in silent
    }
    said = _said(chosen)
    return Hang(layout, culprits, chosen, dumps, dict.fromkeys(culprits, said) if said else {})


def _layout(draw: random.Random) -> Layout:
    data = draw.choice((3, 4, 8))
    expert = draw.choice((1, 4)) if data % 4 == 0 else 1
    return Layout(draw.choice((4, 8)), data, draw.choice((1, 2, 4)), expert)


def _swaps(one: Op, other: Op) -> bool:
    return other.peer is None and one.waits and other.waits and one.group != other.group
