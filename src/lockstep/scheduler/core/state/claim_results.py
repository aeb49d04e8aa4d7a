"""Claims as they are written once they are decided, and in words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from lockstep.api.claims import (
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ClaimSpec,
    ResourceClaim,
)
from lockstep.api.quantity import to_int
from lockstep.scheduler.core.resources.claim_allocation import Pick, options
from lockstep.scheduler.core.state.claim_wishes import on_node


def result(claim: ResourceClaim, pick: Pick) -> AllocatedDevice:
    """Return one device of a claim, as its status says it."""
    device, shared = pick.device, pick.device.shared and not pick.ask.admin_access
    amounts: dict[str, str | int | float] = {}
    share = ""
    if shared:
        own = f"{device.driver}/"
        amounts = {name.removeprefix(own): _amount(one) for name, one in pick.amounts.items()}
        seed = f"{claim.metadata.uid}/{pick.request}/{device.pool}/{device.name}"
        share = _uuid(seed)
    return AllocatedDevice(
        request=pick.request,
        driver=device.driver,
        pool=device.pool,
        device=device.name,
        admin_access=True if pick.ask.admin_access else None,
        tolerations=pick.ask.tolerations,
        share_id=share,
        consumed_capacity=amounts,
    )


def _amount(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(to_int(float(value)))


def _uuid(seed: str) -> str:
    digits = hashlib.sha256(seed.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def shown(spec: ClaimSpec) -> str:
    """Return what a claim asks for in a few words."""
    parts = []
    for request in spec.devices.requests:
        names = [
            f"{'all' if ask.allocation_mode == 'All' else ask.count} {ask.device_class_name}"
            for _, ask in options(request)
        ]
        parts.append(" or ".join(names))
    return " + ".join(parts)


def allocation(
    claim: ResourceClaim,
    picks: Sequence[Pick],
    node: str,
    class_config: Callable[[str], Iterable[dict[str, object]]],
) -> Allocation:
    """Return what is written of a claim that gets *picks* on a node."""
    configs = [
        {"source": "FromClass", "requests": [pick.request], **config}
        for pick in picks
        for config in class_config(pick.ask.device_class_name)
    ]
    configs += [{"source": "FromClaim", **one} for one in claim.spec.devices.config]
    results = [result(claim, pick) for pick in picks]
    return Allocation(
        devices=AllocatedDevices(results=results, config=configs), node_selector=on_node(node)
    )
