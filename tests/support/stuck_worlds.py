"""Simulated training in tensor, data and pipeline groups that hangs, and the dumps that it leaves.

Dumps have the shape of torch's flight recorder: a ring that may have wrapped, times of clocks that
differ, and some of them missing.
"""

from __future__ import annotations

import pickle
import random
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Key = tuple[Any, int]
"""A group, or two ranks of one, and a sequence number."""
Kind = Literal["stands", "dead", "skips", "shape", "other", "device", "swaps"]
KINDS: tuple[Kind, ...] = ("stands", "dead", "skips", "shape", "other", "device", "swaps")


@dataclass(frozen=True)
class Op:
    """One operation of a rank's program."""

    group: str
    name: str
    size: int
    peer: int | None = None
    """Of a send or receive: the other rank."""
    waits: bool = True


@dataclass(frozen=True)
class Layout:
    """How many ranks a tensor, data and pipeline group have."""

    tensor: int
    data: int
    pipeline: int

    @property
    def world(self) -> int:
        return self.tensor * self.data * self.pipeline

    def groups(self) -> dict[str, list[int]]:
        """Return members by name; 0 is the group of all."""
        t, d, p = self.tensor, self.data, self.pipeline
        found = {"0": list(range(self.world))}
        lists = [[b * t + i for i in range(t)] for b in range(d * p)]
        lists += [[s * t * d + k * t + i for k in range(d)] for s in range(p) for i in range(t)]
        lists += [[s * t * d + i for s in range(p)] for i in range(t * d)]
        found |= {str(n + 1): members for n, members in enumerate(lists)}
        return found

    def names(self, rank: int) -> tuple[str, str, str]:
        """Return the names of the tensor, data and pipeline group of *rank*."""
        t, d, p = self.tensor, self.data, self.pipeline
        stage, rest = divmod(rank, t * d)
        first = 1 + d * p
        return (
            str(1 + rank // t),
            str(first + stage * t + rank % t),
            str(first + p * t + rest),
        )


def program(layout: Layout, rank: int) -> list[Op]:
    """Return what a rank does in one step."""
    tensor, data, pipe = layout.names(rank)
    per = layout.tensor * layout.data
    stage = rank // per
    ops: list[Op] = []
    if stage > 0:
        ops.append(Op(pipe, "recv", 64, rank - per))
    ops += [Op(tensor, "all_reduce", 64), Op(tensor, "all_reduce", 128)]
    if stage < layout.pipeline - 1:
        ops.append(Op(pipe, "send", 64, rank + per))
    ops += [
        Op(data, "reduce_scatter", 256, waits=False),
        Op(tensor, "all_gather", 32),
        Op(data, "all_gather", 256),
        Op("0", "all_reduce", 1),
    ]
    return ops


@dataclass
class Hang:
    """A world that hangs: who did it, how, and what is left of it."""

    layout: Layout
    culprit: int
    kind: Kind
    dumps: dict[int, Json] = field(default_factory=dict)

    def pickled(self) -> dict[int, bytes]:
        return {rank: pickle.dumps(dump, 2) for rank, dump in self.dumps.items()}


@dataclass
class _World:
    layout: Layout
    culprit: int
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

    def script(self, rank: int) -> list[Op]:
        ops = [op for _ in range(self.steps) for op in program(self.layout, rank)]
        if rank != self.culprit:
            return ops
        n = len(program(self.layout, rank))
        at = (self.steps - 1) * n + self.at
        if self.kind in ("stands", "dead"):
            return ops[:at]
        if self.kind == "skips":
            return ops[:at] + ops[at + 1 :]
        if self.kind == "swaps":
            return [*ops[:at], ops[at + 1], ops[at], *ops[at + 2 :]]
        if self.kind in ("shape", "other"):
            one = ops[at]
            name = "broadcast" if self.kind == "other" else one.name
            size = one.size if self.kind == "other" else one.size + 1
            return [*ops[:at], Op(one.group, name, size, waits=one.waits), *ops[at + 1 :]]
        return ops

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
            alike = need == 2 or len({(op.name, op.size) for op in there.values()}) == 1
            if len(there) < need or not alike or (lane, seq) == stuck:
                return
            self.done.add((lane, seq))
            yield lane, seq
            seq += 1

    @property
    def hangs(self) -> bool:
        return any(key not in self.done for key in self.arrived)

    def _stuck_on_device(self, scripts: dict[int, list[Op]]) -> Key | None:
        if self.kind != "device":
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
        for number, (op, seq, _) in enumerate(self.log[rank]):
            p2p = op.peer is not None
            lane: Any = (
                (op.group, min(rank, op.peer), max(rank, op.peer))
                if op.peer is not None
                else op.group
            )
            done, many = (lane, seq) in self.done, len(self.groups[op.group])
            begun = done or (lane, seq - 1) in self.done or seq == self.first_seq + 1
            begun = begun and not (self.kind == "device" and rank == self.culprit and not done)
            state = "completed" if done else "started" if begun else "scheduled"
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
                    "p2p_seq_id": seq if p2p else 0,
                    "op_id": number,
                    "profiling_name": f"nccl:{self._named(op, rank)}",
                    "input_sizes": [[op.size * (many if op.name == "reduce_scatter" else 1)]],
                    "input_dtypes": ["Float"],
                    "output_sizes": [[op.size * (many if op.name == "all_gather" else 1)]],
                    "output_dtypes": ["Float"],
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
    layout = layout or Layout(draw.choice((4, 8)), draw.choice((3, 4, 8)), draw.choice((1, 2, 4)))
    chosen: Kind = draw.choice(KINDS) if kind is None else kind
    culprit = draw.randrange(layout.world)
    ops = program(layout, culprit)
    fit = [
        n
        for n, op in enumerate(ops)
        if chosen in ("stands", "dead")
        or (
            op.peer is None and (chosen != "swaps" or (n + 1 < len(ops) and _swaps(op, ops[n + 1])))
        )
    ]
    world = _World(layout, culprit, chosen, 3, draw.choice(fit), draw.randrange(100_000))
    world.run()
    if not world.hangs:
        return hang(seed + 1_000_003, layout, chosen, ring=ring, lost=lost)
    ring = ring if ring is not None else draw.choice((6, 8, 20, 2000))
    silent = {culprit} if chosen == "dead" else set()
    others = [rank for rank in range(layout.world) if rank != culprit]
    silent |= set(draw.sample(others, round(lost * len(others))))
    dumps = {
        rank: world.dump(rank, ring, draw.randrange(-(10**9), 10**9))
        for rank in range(layout.world)
        if rank not in silent
    }
    return Hang(layout, culprit, chosen, dumps)


def _swaps(one: Op, other: Op) -> bool:
    return other.peer is None and one.waits and other.waits and one.group != other.group
