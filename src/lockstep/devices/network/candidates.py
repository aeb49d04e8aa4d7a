"""A tree's NICs as the selectors of device plugins see them, with their device files."""

from __future__ import annotations

from lockstep.compat.nic_plugins import Candidate
from lockstep.devices import sysfs
from lockstep.devices.network.core.model import Nic
from lockstep.devices.network.core.offers import Seen
from lockstep.devices.network.inventory import nics
from lockstep.devices.network.tree import Tree


def candidates(tree: Tree) -> list[Candidate]:
    """Return the NICs that hang on PCI."""
    return [_candidate(tree, nic) for nic in nics(tree) if nic.pci]


def seen(tree: Tree) -> list[Seen]:
    """Return the NICs that can be handed out: those on PCI, and RDMA devices without any."""
    found = [nic for nic in nics(tree) if nic.pci or nic.hca]
    return [Seen(nic, _candidate(tree, nic), _files(tree, nic), _below(tree, nic)) for nic in found]


def _files(tree: Tree, nic: Nic) -> dict[str, str]:
    """Return the device files of an RDMA device by kind."""
    found = {}
    for folder in ("infiniband_mad", "infiniband_verbs"):
        for name in tree.names(f"sys/class/{folder}"):
            if nic.hca and tree.text(f"sys/class/{folder}/{name}/ibdev") == nic.hca:
                found[name.rstrip("0123456789")] = f"/dev/infiniband/{name}"
    return found


def _below(tree: Tree, nic: Nic) -> str:
    """Return why the physical function of a VF carries nothing; empty where it does."""
    pf, _ = _above(tree, nic.pci)
    place = f"sys/class/net/{pf}"
    if not pf or not tree.path(place).exists() or tree.text(f"{place}/carrier") != "0":
        return ""
    return f"the link of its physical function {pf} is down"


def _candidate(tree: Tree, nic: Nic) -> Candidate:
    found = sysfs.function(nic.pci, tree.root)
    pf, vf = _above(tree, nic.pci)
    return Candidate(
        name=nic.name,
        vendor=f"{found.vendor:04x}" if found else "",
        device=f"{found.device:04x}" if found else "",
        driver=nic.driver,
        netdev=nic.netdev,
        pci=nic.pci,
        pf=pf or nic.netdev,
        vf=vf,
        link=nic.link,
        rdma=bool(nic.hca),
    )


def _above(tree: Tree, pci: str) -> tuple[str, int | None]:
    """Return the netdev of a VF's physical function, and the VF's number there."""
    place = f"sys/bus/pci/devices/{pci}/physfn"
    if not tree.path(place).exists():
        return "", None
    netdevs = tree.names(f"{place}/net")
    for name in tree.names(place):
        if name.startswith("virtfn") and tree.path(f"{place}/{name}").resolve().name == pci:
            return next(iter(netdevs), ""), int(name.removeprefix("virtfn") or 0)
    return next(iter(netdevs), ""), None
