"""PCIe, the port, and what processes may do: the first three groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lockstep.api.network import Check
from lockstep.compat.vendors import recognise
from lockstep.devices import sysfs
from lockstep.devices.network.checklist.about import About, answer
from lockstep.devices.network.core.model import Nic

FLAPS: Final = 10
"""Changes of the carrier above which a link is said to flap."""
ROCE_MTU: Final = 4200
"""Bytes of Ethernet's MTU from which RDMA's of 4096 fits."""
IPC_LOCK: Final = 14
MEMLOCK: Final = 1 << 30
ERRORS: Final = ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors")
MOST_ERRORS: Final = 10


def pcie(one: About) -> Iterator[Check]:
    """Yield links that run below what the card could, and what keeps GPU and NIC apart."""
    for nic in one.nics:
        yield from _link(one, nic)
    yield from _acs(one)
    yield from _iommu(one)
    yield from _gpus(one)


def _link(one: About, nic: Nic) -> Iterator[Check]:
    fix = "reseat the card; look at the slot's width and the BIOS"
    speed, most = _first(nic.speed), _first(nic.max_speed)
    if speed and most and speed < most:
        told = f"the PCIe link runs at {nic.speed}, the card can {nic.max_speed}"
        yield answer("pcie", "fail", one.place(nic), told, fix)
    if nic.width and nic.max_width and nic.width < nic.max_width:
        told = f"the PCIe link has {nic.width} lanes, the card can have {nic.max_width}"
        yield answer("pcie", "fail", one.place(nic), told, fix)


def _acs(one: About) -> Iterator[Check]:
    if not _cards(one) or not any(nic.hca for nic in one.nics):
        return
    bridges = {bridge for nic in one.nics for bridge in nic.bridges}
    short = {bridge.removeprefix("0000:") for bridge in bridges} | bridges
    for block in one.tree.tool("lspci").split("\n\n"):
        address = block.partition(" ")[0].strip()
        found = re.search(r"ACSCtl:(.*)", block)
        if address in short and found and re.search(r"(ReqRedir|CmpltRedir)\+", found[1]):
            told = f"ACS redirects at the bridge {address}: {found[1].strip()[:120]}"
            fix = "switch ACS off on the bridges above GPU and NIC (setpci, or in the BIOS)"
            yield answer("pcie", "fail", one.tree.name, told, fix)


def _iommu(one: About) -> Iterator[Check]:
    words = one.tree.text("proc/cmdline").split()
    on = any(w in words for w in ("intel_iommu=on", "amd_iommu=on", "iommu=force"))
    if on and "iommu=pt" not in words and _cards(one) and any(nic.hca for nic in one.nics):
        told = "the IOMMU translates every transfer: " + " ".join(w for w in words if "iommu" in w)
        yield answer("pcie", "warn", one.tree.name, told, "add iommu=pt, or switch the IOMMU off")


def _cards(one: About) -> list[sysfs.Function]:
    return [
        found
        for found in sysfs.functions(one.tree.root)
        if recognise(found.vendor, found.device, found.class_) is not None
    ]


def _gpus(one: About) -> Iterator[Check]:
    cards = _cards(one)
    modules = {line.split(" ")[0] for line in one.tree.text("proc/modules").splitlines()}
    rdma = [nic for nic in one.nics if nic.hca]
    if not cards or not rdma:
        return
    if "nvidia" in modules and not modules & {"nvidia_peermem", "nv_peer_mem", "nvidia_drm"}:
        told = "neither nvidia_peermem nor the driver's dma-buf (nvidia_drm) is loaded"
        yield answer("pcie", "fail", one.tree.name, told, "modprobe nvidia_peermem")
    roots = {card.root for card in cards if card.root}
    for nic in rdma:
        if roots and nic.root and nic.root not in roots and nic.kind != "vf":
            told = f"no GPU hangs on its PCIe root {nic.root}: traffic crosses the CPU"
            fix = "give jobs NICs beside their GPUs; NCCL_NET_GDR_LEVEL then stays as it is"
            yield answer("pcie", "warn", one.place(nic), told, fix)


def port(one: About) -> Iterator[Check]:
    """Yield ports that are down, slow, small, or that count errors."""
    best = max((nic.rate for nic in one.nics), default=0.0)
    for nic in one.nics:
        place = one.place(nic)
        if not nic.up:
            state = nic.state or "unknown"
            told = f"the port is {state}" + (f", physically {nic.physical}" if nic.physical else "")
            yield answer("port", "fail", place, told, "look at cable, transceiver and switch port")
            continue
        if nic.rate and nic.rate * 1.01 < best:
            told = f"{nic.rate:g} Gb/s; another NIC of the node has {best:g}"
            fix = "look at the cable's lanes and the switch port's speed"
            yield answer("port", "fail", place, told, fix)
        yield from _mtu(one, nic)
        yield from _counted(one, nic)


def _mtu(one: About, nic: Nic) -> Iterator[Check]:
    place = one.place(nic)
    stated = next((rail.mtu for rail in one.rails if rail.name == nic.rail), 0)
    if stated and nic.mtu and nic.mtu != stated:
        told = f"MTU {nic.mtu}; the rail {nic.rail} has {stated}"
        yield answer("port", "fail", place, told, f"ip link set {nic.netdev} mtu {stated}")
    elif nic.hca and nic.link == "ethernet" and 0 < nic.mtu < ROCE_MTU:
        told = f"MTU {nic.mtu} leaves RDMA less than 4096 bytes"
        fix = f"ip link set {nic.netdev} mtu 9000, and on the switch"
        yield answer("port", "fail", place, told, fix)
    active = _first(one.tree.text(f"sys/class/infiniband/{nic.hca}/ports/1/active_mtu"))
    if nic.hca and nic.link == "infiniband" and 0 < active < 4096:
        told = f"the active MTU is {active:g}"
        yield answer("port", "warn", place, told, "set 4096 in the subnet manager's partition")
    switch = _switch_mtu(one, nic)
    if switch and nic.mtu > switch:
        told = f"MTU {nic.mtu}; the switch's port takes frames of {switch}"
        yield answer("port", "fail", place, told, "raise the MTU of the switch's port")


def _switch_mtu(one: About, nic: Nic) -> int:
    from lockstep.devices.network.checklist.neighbour import neighbour

    found = neighbour(one.tree, nic.netdev).get("port", {})
    text = str(found.get("mfs", "")) if isinstance(found, dict) else ""
    # Of a frame, Ethernet's header and checksum take 18 bytes.
    return int(text) - 18 if text.isdecimal() and int(text) > 18 else 0


def _counted(one: About, nic: Nic) -> Iterator[Check]:
    fix = "clean or replace the cable and its transceivers"
    if nic.hca:
        for name in ERRORS:
            text = one.tree.text(f"sys/class/infiniband/{nic.hca}/ports/1/counters/{name}")
            if text.isdecimal() and int(text) > MOST_ERRORS:
                yield answer("port", "warn", one.place(nic), f"{name} is {text}", fix)
    changes = one.tree.text(f"sys/class/net/{nic.netdev}/carrier_changes") if nic.netdev else ""
    if changes.isdecimal() and int(changes) > FLAPS:
        told = f"the link came and went: {changes} changes of the carrier"
        yield answer("port", "warn", one.place(nic), told, fix)
    said = one.tree.tool("ethtool-counters", nic.netdev) if _asked(one, nic) else ""
    found = re.search(r"(rx_(?:crc_errors|symbol_err)_phy|fec_uncorrectable\w*): (\d+)", said)
    if found and int(found[2]) > MOST_ERRORS:
        yield answer("port", "warn", one.place(nic), f"{found[1]} is {found[2]}", fix)


def _asked(one: About, nic: Nic) -> bool:
    return bool(nic.netdev) and (
        one.tree.live or one.tree.path(f"tools/ethtool-counters-{nic.netdev}").exists()
    )


def limits(one: About) -> Iterator[Check]:
    """Yield what keeps processes from their NICs: files, limits, namespaces."""
    rdma = [nic for nic in one.nics if nic.hca]
    if not rdma:
        return
    verbs = {
        one.tree.text(f"sys/class/infiniband_verbs/{name}/ibdev"): name
        for name in one.tree.names("sys/class/infiniband_verbs")
    }
    for nic in rdma:
        if nic.hca not in verbs:
            told = "no uverbs device belongs to it"
            yield answer("limits", "fail", one.place(nic), told, "modprobe ib_uverbs")
        elif one.tree.path("dev/infiniband").is_dir() and not (
            one.tree.path(f"dev/infiniband/{verbs[nic.hca]}").exists()
        ):
            told = f"/dev/infiniband/{verbs[nic.hca]} is not there"
            yield answer("limits", "fail", one.place(nic), told, "udevadm trigger")
    yield from _memlock(one)
    yield from _namespaces(one, rdma)


def _memlock(one: About) -> Iterator[Check]:
    found = re.search(r"Max locked memory\s+(\S+)", one.tree.text("proc/self/limits"))
    if found and found[1].isdecimal() and int(found[1]) < MEMLOCK:
        told = f"at most {found[1]} bytes of memory may be locked"
        fix = "ulimit -l unlimited; LimitMEMLOCK=infinity for the container runtime"
        yield answer("limits", "fail", one.tree.name, told, fix)
    mask = re.search(r"CapEff:\s*([0-9a-fA-F]+)", one.tree.text("proc/self/status"))
    if mask and not int(mask[1], 16) >> IPC_LOCK & 1:
        told = "the capability IPC_LOCK is missing"
        yield answer("limits", "warn", one.tree.name, told, "add IPC_LOCK to the container")


def _namespaces(one: About, rdma: list[Nic]) -> Iterator[Check]:
    said = [x for x in one.tree.json("rdma-system") if isinstance(x, dict)]
    mode = str(said[0].get("netns", "")) if said else ""
    functions = [nic for nic in rdma if nic.kind in ("vf", "sf")]
    if mode == "exclusive" and not functions and len(rdma) > 0:
        told = "RDMA devices belong to one namespace each, and there is no VF to hand out"
        yield answer(
            "limits", "warn", one.tree.name, told, "rdma system set netns shared, or make VFs"
        )


def _first(text: str) -> float:
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found else 0.0
