"""What a container asks for of shared cards, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

from lockstep.api import names, quantity
from lockstep.api.core import ResourceRequirements
from lockstep.devices.sharing.core.leases import Policy

MIB: Final = 1 << 20
BYTES_FROM: Final = 1 << 20
"""Amounts of memory from here on are bytes: no GPU has as many MiB."""
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
ISOLATION: Final = "lease"


@dataclass(frozen=True, slots=True)
class Ask:
    """A container's share of each of its cards; 0 is without limit."""

    memory: int
    """Bytes."""
    compute: int
    """Hundredths."""
    policy: Policy = "fixed"
    offline: bool = False


class BadAsk(Exception):
    """A share is asked for that cannot be held; the message names field, value and remedy."""


def asked(resources: ResourceRequirements, annotations: Mapping[str, str]) -> Ask | None:
    """Return the share that a container asks for; none when it asks for none.

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
    return Ask(
        memory=memory * MIB if memory < BYTES_FROM else memory,
        compute=compute,
        policy=_policy(annotations),
        offline=annotations.get(names.GPU_CLASS_ANNOTATION) == "offline",
    )


def _policy(annotations: Mapping[str, str]) -> Policy:
    isolation = annotations.get(names.GPU_ISOLATION_ANNOTATION, ISOLATION)
    if isolation != ISOLATION:
        raise BadAsk(
            f"{names.GPU_ISOLATION_ANNOTATION}: given {isolation!r}; this node holds shares by "
            f"{ISOLATION} alone"
        )
    given = annotations.get(names.GPU_POLICY_ANNOTATION, "fixed")
    for policy in POLICIES:
        if given == policy:
            return policy
    raise BadAsk(
        f"{names.GPU_POLICY_ANNOTATION}: given {given!r}; it is one of {', '.join(POLICIES)}"
    )
