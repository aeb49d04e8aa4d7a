"""Team: who belongs together, with which rights and limits."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import Condition, OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.queue import Amount, QueueSpec
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

TeamRole = Literal["Admin", "Edit", "View"]
NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class Member(Wire, frozen=True):
    """A user, group or service account of a team."""

    name: Annotated[str, Meta(min_length=1)]
    """Name as the API server knows it; a service account is NAMESPACE/NAME."""
    kind: Literal["User", "Group", "ServiceAccount"] = "User"
    """What the name belongs to."""
    role: TeamRole = "Edit"
    """What the member may do in the team's namespaces: View reads, Edit also submits and deletes
    jobs, Admin also gives rights within the namespace."""


class TeamBudget(Wire, frozen=True):
    """What all namespaces of a team together are to spend in a month (UTC)."""

    month: Annotated[float, Meta(gt=0)]
    """The most to spend in a month, in the currency of the PriceLists."""
    warn_at: Annotated[float, Meta(ge=0, le=1)] = 0.8
    """Part of it from which on there is a warning."""
    hold: bool = False
    """Whether jobs that have not started wait once it is spent."""


class TeamSpec(Wire, frozen=True):
    """Members, namespaces and limits of a team."""

    members: Annotated[list[Member], Meta(max_length=1000)] = []
    """Who is in the team."""
    namespaces: Annotated[
        list[Annotated[str, Meta(pattern=NAME, max_length=63)]], Meta(max_length=16)
    ] = []
    """Namespaces of the team; one of the team's own name when left out."""
    queue: QueueSpec | None = None
    """The team's queue, which bears the team's name; none when left out, then its jobs name a queue
    that is there."""
    quota: dict[str, Amount] = {}
    """Most that all pods of one namespace may ask for, as a ResourceQuota states it:
    requests.nvidia.com/gpu, limits.memory, pods."""
    devices: list[str] | None = None
    """Device resources that its pods may ask for, such as nvidia.com/gpu; of the others that
    Lockstep knows, none. All when left out."""
    images: (
        Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=100)]
        | None
    ) = None
    """Images that its pods may have: registry/vision/* for all that begin like that, python for any
    tag of it. All when left out."""
    budget: TeamBudget | None = None
    """What the team is to spend in a month at most."""
    container_defaults: dict[str, Amount] = {}
    """What a container gets that states no request: cpu, memory."""
    network: Literal["Open", "Isolated"] = "Open"
    """Isolated lets only pods of the team's own namespaces connect to its pods."""
    pod_security: Literal["Privileged", "Baseline", "Restricted"] | None = None
    """Pod Security Standard that its pods must meet; isolation by network needs Baseline, or pods
    use their node's network. As the cluster has it when left out."""
    deletion: Literal["Keep", "Delete"] = "Keep"
    """What becomes of the namespaces and their data when the team is deleted."""


class TeamStatus(Wire, frozen=True):
    """What is there of the team."""

    conditions: list[Condition] = []
    namespaces: list[str] = []
    members: int = 0


class Team(OwnObject, frozen=True):
    """A team: rights, queue and quotas from one object."""

    spec: TeamSpec = TeamSpec()
    status: TeamStatus = TeamStatus()
    kind: str = "Team"


TEAMS = Resource(GROUP, VERSION, "teams", "Team", False, Team)
