"""What ranks of simulated training do in a step, in tensor, data, pipeline and expert groups."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Op:
    """One operation of a rank's program."""

    group: str
    name: str
    size: int
    peer: int | None = None
    """Of a send or receive: the other rank."""
    waits: bool = True
    dtype: str = "Float"


@dataclass(frozen=True)
class Layout:
    """How many ranks a tensor, data and pipeline group have; an expert group is part of a data one.

    With ``expert=1`` there are none.
    """

    tensor: int
    data: int
    pipeline: int
    expert: int = 1

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
        lists += [
            [s * t * d + k * t + i for k in range(first, first + self.expert)]
            for s in range(p)
            for i in range(t)
            for first in range(0, d, self.expert)
            if self.expert > 1
        ]
        found |= {str(n + 1): members for n, members in enumerate(lists)}
        return found

    def names(self, rank: int) -> tuple[str, ...]:
        """Return the names of the tensor, data, pipeline and, where there is one, expert group."""
        t, d, p = self.tensor, self.data, self.pipeline
        stage, rest = divmod(rank, t * d)
        first = 1 + d * p
        names = (
            str(1 + rank // t),
            str(first + stage * t + rank % t),
            str(first + p * t + rest),
        )
        if self.expert == 1:
            return names
        per = d // self.expert
        begin = first + p * t + t * d + (stage * t + rank % t) * per
        return (*names, str(begin + rest // t // self.expert))


def program(layout: Layout, rank: int) -> list[Op]:
    """Return what a rank does in one step."""
    tensor, data, pipe, *experts = layout.names(rank)
    per = layout.tensor * layout.data
    stage = rank // per
    ops: list[Op] = []
    if stage > 0:
        ops.append(Op(pipe, "recv", 64, rank - per))
    ops += [Op(tensor, "all_reduce", 64), Op(tensor, "all_reduce", 128)]
    # Tokens go where experts are: each rank gives another number of them.
    ops += [Op(one, "all_to_all", 100 + rank * 7 + n) for one in experts for n in range(2)]
    if stage < layout.pipeline - 1:
        ops.append(Op(pipe, "send", 64, rank + per))
    ops += [
        Op(data, "reduce_scatter", 256, waits=False),
        Op(tensor, "all_gather", 32),
        Op(data, "all_gather", 256),
        Op("0", "all_reduce", 1),
    ]
    return ops
