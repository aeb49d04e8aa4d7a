"""The groups of a gang as they were asked for, and how far the members of each are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep.api.gang import Gang, TopologyWish
from lockstep.api.names import GANG_GROUP_LABEL
from lockstep.api.selectors import LabelMatch, SelectorError, from_selector
from lockstep.scheduler.core.resources.alignment import NO_ALIGNMENT, Alignment

M = TypeVar("M")
"""What the members are: nothing is asked of them here."""


@dataclass(frozen=True)
class GroupSpec:
    """One group of a gang as it was asked for."""

    name: str
    minimum: int
    desired: int | None
    """None where any number of members may be placed."""
    wish: TopologyWish
    match: LabelMatch | None = None
    processes: int | None = None
    """Ranks that a member runs; None stands for one for each of its GPUs."""
    alignment: Alignment = NO_ALIGNMENT
    """Of the devices of members that say nothing of it themselves."""
    spares: int = 0
    """Of the members desired, how many stand by: the last of them."""
    provisioned: bool = False
    """Whether nodes are got for all members desired, not for the minimum alone."""

    def has(self, labels: dict[str, str], *, only: bool) -> bool:
        """Return whether a pod with these labels belongs to the group; *only* one takes all."""
        if self.match is not None:
            return self.match.matches(labels)
        return only or labels.get(GANG_GROUP_LABEL, "") == self.name


@dataclass
class PodGroup(Generic[M]):
    """The members of one group, by how far they are."""

    group: GroupSpec
    bound: list[M] = field(default_factory=list)
    pending: list[M] = field(default_factory=list)
    gated: list[M] = field(default_factory=list)
    finished: int = 0

    @property
    def need(self) -> int:
        """Return how many more members must get a node before the gang may start."""
        return max(0, self.group.minimum - len(self.bound) - self.finished)

    @property
    def want(self) -> int:
        """Return how many of the pending members are to get a node."""
        if self.group.desired is None:
            return len(self.pending)
        open_places = self.group.desired - len(self.bound) - self.finished
        return min(len(self.pending), max(self.need, open_places, 0))

    @property
    def missing(self) -> int:
        """Return how many of the needed members do not exist yet or are held back by gates."""
        return max(0, self.need - len(self.pending))

    @property
    def lacks(self) -> int:
        """Return for how many members nodes are to be got."""
        return self.want if self.group.provisioned else self.need

    @property
    def standing_by(self) -> list[M]:
        """Return the members with nodes that do no work, in case that another is lost."""
        if not self.group.spares or self.group.desired is None:
            return []
        working = max(self.group.minimum, self.group.desired - self.group.spares)
        return self.bound[max(0, working - self.finished) :]

    @property
    def total(self) -> int:
        """Return how many members count towards the group."""
        return len(self.bound) + len(self.pending) + len(self.gated) + self.finished


NO_WISH = TopologyWish()
_ALONE = GroupSpec("", 1, 1, NO_WISH)


def groups_of(gang: Gang | None, *, alone: bool) -> tuple[list[GroupSpec], str]:
    """Return the groups of a gang, or of a pod *alone*, and what is wrong with their selectors."""
    if alone:
        return [_ALONE], ""
    if gang is None:
        return [GroupSpec("", 1, None, NO_WISH)], ""
    stated = Alignment.asked(gang.spec.alignment)
    if not gang.spec.groups:
        return [GroupSpec("", gang.spec.min_member or 1, None, NO_WISH, alignment=stated)], ""
    groups, problems = [], []
    for group in gang.spec.groups:
        match = None
        if group.selector is not None:
            try:
                match = from_selector(group.selector)
            except SelectorError as error:
                problems.append(f"the selector of group {group.name}: {error}")
                match = LabelMatch(nothing=True)
        wanted = group.desired or group.min
        groups.append(
            GroupSpec(
                group.name,
                group.min,
                wanted,
                group.topology or NO_WISH,
                match,
                group.processes,
                stated if group.alignment is None else Alignment.asked(group.alignment),
                group.spares,
                group.provision == "Desired",
            )
        )
    return groups, "; ".join(problems)
