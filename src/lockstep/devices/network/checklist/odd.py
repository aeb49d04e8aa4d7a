"""The odd one out: a NIC or a machine that differs from all others of its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lockstep.api.network import Check, State
from lockstep.devices.network.checklist.about import About, answer
from lockstep.devices.network.checklist.lossless import quality
from lockstep.devices.network.core.model import Nic

FIXES: Final[Mapping[str, str]] = {
    "firmware": "flash the version of the others",
    "driver": "install the driver of the others",
    "MTU": "ip link set NETDEV mtu MTU",
    "rate": "look at the port's speed and the cable's lanes",
    "GID index": "take the index per rank and HCA, never one for a job; or NCCL's own choice",
    "PFC": "mlnx_qos --pfc as on the others",
    "trust": "mlnx_qos --trust as on the others",
    "PCIe width": "reseat the card",
    "NICs": "look for a card that is missing: lspci",
}


def facts(one: About, nic: Nic) -> dict[str, str]:
    """Return what NICs of one kind have in common."""
    second = [g.index for g in nic.gids if g.type.replace(" ", "").lower() == "rocev2"]
    said = {
        "firmware": nic.firmware,
        "driver": nic.driver,
        "MTU": str(nic.mtu or ""),
        "rate": f"{nic.rate:g}" if nic.rate else "",
        "PCIe width": str(nic.width or ""),
        "GID index": str(min(second)) if second else "",
    }
    recorded = one.tree.live or one.tree.path(f"tools/qos-{nic.netdev}").exists()
    if nic.hca and nic.netdev and recorded and (q := quality(one.tree.tool("qos", nic.netdev))):
        said |= {"PFC": ",".join(map(str, sorted(q.paused))), "trust": q.trust}
    return {name: value for name, value in said.items() if value}


def inside(one: About) -> Iterator[Check]:
    """Yield the NIC of a machine that differs from its others."""
    alike = [nic for nic in one.nics if nic.up]
    yield from _odd([(one.place(nic), facts(one, nic)) for nic in alike])


def between(seen: Sequence[About]) -> Iterator[Check]:
    """Yield the machine, or its NIC of one rail, that differs from the others'."""
    counts = [(one.tree.name, {"NICs": str(len(one.nics))}) for one in seen]
    yield from _odd(counts)
    rails = sorted({nic.rail for one in seen for nic in one.nics if nic.rail})
    for rail in rails:
        those = [
            (one.place(nic), facts(one, nic))
            for one in seen
            for nic in one.nics
            if nic.rail == rail and nic.up
        ]
        yield from _odd(those)


def _odd(those: Sequence[tuple[str, Mapping[str, str]]]) -> Iterator[Check]:
    """Yield those that differ from all others: at least two thirds agree, of three or more."""
    for name in dict.fromkeys(key for _, said in those for key in said):
        values = [(place, said[name]) for place, said in those if name in said]
        usual, often = Counter(value for _, value in values).most_common(1)[0]
        if len(values) < 3 or often * 3 < len(values) * 2:
            continue
        for place, value in values:
            if value != usual:
                told = f"{name} {value}; {often} of {len(values)} have {usual}"
                # Pods may have other indices than each other: what counts is that none is fixed.
                state: State = "warn" if name == "GID index" else "fail"
                yield answer("odd", state, place, told, FIXES[name])
