"""What a container asks for of shared cards, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from lockstep.api import names, quantity
from lockstep.api.containers import ResourceRequirements
from lockstep.devices.sharing.core.leases import Policy

MIB: Final = 1 << 20
BYTES_FROM: Final = 1 << 20
"""Amounts of memory from here on are bytes: no GPU has as many MiB."""
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
Isolation = Literal["lease", "mps", "timeslice", "whole"]
"""By what a share is held: our front, NVIDIA's MPS, nothing, or the whole card for one pod."""
ISOLATIONS: Final[tuple[Isolation, ...]] = get_args(Isolation)


@dataclass(frozen=True, slots=True)
class Ask:
    """A container's share of each of its cards; 0 is without limit."""

    memory: int
    """Bytes."""
    compute: int
    """Hundredths."""
    policy: Policy = "fixed"
    offline: bool = False
    isolation: Isolation = "lease"


class BadAsk(Exception):
    """A share is asked for that cannot be held; the message names field, value and remedy."""


def asked(resources: ResourceRequirements, annotations: Mapping[str, str]) -> Ask | None:
    """Return the share that a container asks for; none when it asks for none, or has it ``whole``.

    Raises:
        BadAsk: when it cannot be held.
    """
    given = {**resources.requests, **resources.limits}
    memory = quantity.to_int(given.get(names.GPU_MEMORY, 0))
    compute = quantity.to_int(given.get(names.GPU_COMPUTE, 0))
    if not memory and not compute:
        return None
    if compute > 100:
        raise BadAsk(
            f"{names.GPU_COMPUTE}: given {compute}; a container takes at most 100 hundredths of a "
            f"card; take more cards with {names.GPU_CARDS}"
        )
    isolation = isolation_of(annotations)
    if isolation == "whole":
        return None
    return Ask(
        memory=memory * MIB if memory < BYTES_FROM else memory,
        compute=compute,
        policy=_policy(annotations),
        offline=annotations.get(names.GPU_CLASS_ANNOTATION) == "offline",
        isolation=isolation,
    )


def isolation_of(annotations: Mapping[str, str]) -> Isolation:
    """Return by what a pod's shares are held.

    Raises:
        BadAsk: when it is nothing that there is.
    """
    given = annotations.get(names.GPU_ISOLATION_ANNOTATION, "lease")
    for isolation in ISOLATIONS:
        if given == isolation:
            return isolation
    remedy = f"it is one of {', '.join(ISOLATIONS)}"
    if given == "mig":
        remedy = (
            "shares are not cut by MIG: ask for a MIG device by its name, such as "
            f"nvidia.com/mig-1g.18gb, or use one of {', '.join(ISOLATIONS)}"
        )
    raise BadAsk(f"{names.GPU_ISOLATION_ANNOTATION}: given {given!r}; {remedy}")


def _policy(annotations: Mapping[str, str]) -> Policy:
    given = annotations.get(names.GPU_POLICY_ANNOTATION, "fixed")
    for policy in POLICIES:
        if given == policy:
            return policy
    raise BadAsk(
        f"{names.GPU_POLICY_ANNOTATION}: given {given!r}; it is one of {', '.join(POLICIES)}"
    )
