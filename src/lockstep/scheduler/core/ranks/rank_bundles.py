"""The members of a gang that hold ranks, in rank order, and which of them stay together.

A tensor group never leaves a node (or an NVLink domain that spans nodes). Where it is larger than
one pod, the pods that hold it are a *bundle*: they are placed as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lockstep.api.parallelism import Parallelism
from lockstep.scheduler.core.model.pod_groups import GroupSpec
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.ranks.collectives import tensor_stride


@dataclass(frozen=True, slots=True)
class Bundle:
    """Members that are placed as one, in rank order."""

    members: tuple[Member, ...]
    groups: tuple[int, ...]
    """For each member the number of its group."""
    ranks: tuple[range, ...]
    """For each member the ranks that it holds."""

    @property
    def waiting(self) -> tuple[Member, ...]:
        """Return the members that have no node yet."""
        return tuple(member for member in self.members if not member.node)

    @property
    def standing(self) -> tuple[Member, ...]:
        """Return the members that have one."""
        return tuple(member for member in self.members if member.node)


@dataclass(frozen=True, slots=True)
class BundledRanks:
    """All bundles of a gang in rank order."""

    split: Parallelism
    size: int
    """Members in a whole bundle."""
    bundles: tuple[Bundle, ...]


def bundle_ranks(workload: Workload) -> BundledRanks | None:
    """Return the roll of a gang that states its parallelism; None for any other workload."""
    split = workload.parallelism
    if split is None:
        return None
    placed = sorted(_numbered(workload), key=lambda found: found[0])
    if not placed:
        return None
    counts = [_processes(workload.pod_groups[group].group, member) for _, group, member in placed]
    ranks = _spans([place for place, _, _ in placed], counts)
    bundles = [
        Bundle(
            tuple(placed[number][2] for number in part),
            tuple(placed[number][1] for number in part),
            tuple(ranks[number] for number in part),
        )
        for part in _together(split, ranks)
    ]
    return BundledRanks(split, max(len(bundle.members) for bundle in bundles), tuple(bundles))


def _spans(places: Sequence[int], counts: Sequence[int]) -> list[range]:
    """Return the ranks of the members at *places*, each of which holds so many."""
    if len(set(counts)) == 1:  # members that are missing leave a gap
        size = counts[0]
        return [range(place * size, (place + 1) * size) for place in places]
    ends = list(accumulate(counts))
    return [range(end - count, end) for end, count in zip(ends, counts, strict=True)]


def _together(split: Parallelism, ranks: Sequence[range]) -> list[list[int]]:
    """Return which members, by number, share tensor groups, directly or by way of others."""
    stride = tensor_stride(split, ranks[-1].stop)
    block = split.tensor * stride
    if not any(held.start % block or held.stop % block for held in ranks):
        return [[number] for number in range(len(ranks))]
    parent = list(range(len(ranks)))

    def root(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    holder: dict[int, int] = {}
    for number, held in enumerate(ranks):
        for group in {rank // block * stride + rank % stride for rank in held}:
            one, other = sorted((root(number), root(holder.setdefault(group, number))))
            parent[other] = one
    parts: dict[int, list[int]] = {}
    for number in range(len(ranks)):
        parts.setdefault(root(number), []).append(number)
    return list(parts.values())


def torn(workload: Workload, *, across: bool) -> str:
    """Return why tensor groups of several pods cannot be kept together, empty where they can.

    *across* says that they may stand on several nodes of an NVLink domain.
    """
    roll = bundle_ranks(workload)
    if roll is None or roll.size == 1:
        return ""
    groups = sorted({group for bundle in roll.bundles for group in bundle.groups})
    pod_groups = [workload.pod_groups[group] for group in groups]
    names = ", ".join(pod_group.group.name for pod_group in pod_groups)
    if len({pod_group.group.wish for pod_group in pod_groups}) > 1:
        return f"the groups {names} share tensor groups and have wishes of their own"
    if len(pod_groups) > 1 and any(m.want < len(m.pending) for m in pod_groups):
        return (
            f"the groups {names} share tensor groups, and one of them has more pods than it wants"
        )
    if across and len({len(held) for bundle in roll.bundles for held in bundle.ranks}) > 1:
        return f"the groups {names} share tensor groups and their pods hold unlike numbers of ranks"
    if any(m.shape.share is not None for bundle in roll.bundles for m in bundle.members):
        return f"the groups {names} share tensor groups and take parts of GPUs"
    if any(m.shape.alignment.required for bundle in roll.bundles for m in bundle.members):
        return f"the groups {names} share tensor groups and ask for aligned devices"
    for bundle in roll.bundles:
        first = bundle.members[0].shape
        unlike = (m for m in bundle.members if m.shape.whereabouts != first.whereabouts)
        if across:
            first = roll.bundles[0].members[0].shape
            unlike = (m for m in bundle.members if m.shape is not first)
        if (other := next(unlike, None)) is not None:
            name = bundle.members[0].name
            return f"the pods {name} and {other.name} hold ranks of tensor groups and are not alike"
    return ""


def _numbered(workload: Workload) -> Iterator[tuple[int, int, Member]]:
    """Yield the place among all that hold ranks, the group and the member, for each of them.

    The place is the rank that the maker of the pods gave them, less those before that hold none;
    without it their order by name.
    """
    ahead = before = 0
    for number, pod_group in enumerate(workload.pod_groups):
        members = [*pod_group.bound, *pod_group.pending]
        group = pod_group.group
        if members and not _processes(group, members[0]):
            ahead += group.desired or group.minimum
            continue
        for place, member in enumerate(sorted(members, key=lambda m: m.order)):
            known = member.rank is not None and member.rank >= ahead
            yield (member.rank or 0) - ahead if known else before + place, number, member
        before += len(members)


def _processes(group: GroupSpec, member: Member) -> int:
    share = member.shape.share
    cards = member.shape.gpus or (share.cards if share is not None else 1)
    return cards if group.processes is None else group.processes
