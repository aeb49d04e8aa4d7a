"""What NCCL and its like should be told about the network, each value with reason and source.

Values that depend on a rank's HCAs are per rank: GID indices differ between pods, so none is ever
given to a whole job. Switches that make programs print are never set. What the user sets stands.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.devices import GIDS, ONE_GID, ROCE_VERSION, gid_variables
from lockstep.api.topology import Rail

AUTOMATIC: Final = (2, 21)
"""NCCL's version from which it finds the GID itself, by RoCE's version and an address range."""
RETRIES: Final = 7
TIMEOUT: Final = 22
"""4.096 us times two to this power: 17 s, for a link that comes back; NCCL's own is 20 or less."""
FLOWS: Final = 4
SHARED_GID: Final = "indices differ between pods and HCAs; leave it out, each rank has its own"
DEBUG: Final = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "TORCH_DISTRIBUTED_DEBUG")


@dataclass(frozen=True, slots=True)
class Hca:
    """One HCA of a rank: its rail, what its port speaks, and its RoCE v2 index, if known."""

    name: str
    rail: str = ""
    link: str = ""
    gid: int | None = None
    beside_gpu: bool = True


@dataclass(frozen=True, slots=True)
class Network:
    """What is known of the network that a job uses."""

    rails: Sequence[Rail] = ()
    tiers: int = 0
    """Tiers of switches above nodes."""
    dscp: int | None = None
    nccl: tuple[int, int] | None = None
    """NCCL's version, where known."""
    socket: str = ""
    """The netdev that addresses of pods are on."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable: its value, why, and what tells so; *own* is the user's value."""

    name: str
    value: str
    reason: str
    source: str
    own: str | None = None
    doubt: str = ""

    @property
    def stands(self) -> str:
        """Return the value that counts: the user's before ours."""
        return self.value if self.own is None else self.own


@dataclass
class Rank:
    """One rank: its pod, its HCAs, and the variables that its containers were given."""

    pod: str
    hcas: Sequence[Hca] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def explained(rank: Rank, network: Network) -> list[Setting]:
    """Return each variable that counts for a rank, those that the user sets among them."""
    found = []
    for one in (*_hcas(rank), *_gids(rank, network), *_flow(rank, network), *_sockets(network)):
        own = rank.env.get(one.name)
        if own is None or (own == one.value and one.name != ONE_GID):
            found.append(one)
            continue
        doubt = _doubt(one, own, rank)
        found.append(Setting(one.name, one.value, one.reason, one.source, own, doubt))
    known = {one.name for one in found}
    found += _stated(rank, known)
    return found


def _hcas(rank: Rank) -> Iterator[Setting]:
    names = ",".join(hca.name for hca in rank.hcas)
    if not names:
        return
    source = "annotation lockstep.dev/hcas of the pod"
    why = "exactly the HCAs that were handed out: without = it is the beginning of names"
    yield Setting("NCCL_IB_HCA", f"={names}", why, source)
    ports = ",".join(f"{hca.name}:1" for hca in rank.hcas)
    yield Setting("UCX_NET_DEVICES", ports, "the same HCAs for UCX and MPI over it", source)


def _gids(rank: Rank, network: Network) -> Iterator[Setting]:
    roce = [hca for hca in rank.hcas if hca.link == "ethernet"]
    table = {hca.name: -1 if hca.gid is None else hca.gid for hca in roce}
    told = gid_variables(table)
    source = "GID tables of the node, as they were at the grant"
    if GIDS in told:
        yield Setting(GIDS, told[GIDS], "the RoCE v2 entry of each of this rank's HCAs", source)
    if ONE_GID in told:
        why = "all HCAs of this rank have it; other ranks may have another"
        yield Setting(ONE_GID, told[ONE_GID], why, source)
        return
    if not roce or (network.nccl is not None and network.nccl < AUTOMATIC):
        return
    why = "NCCL 2.21 and later then finds each HCA's GID itself"
    yield Setting(ROCE_VERSION, "2", why, "the HCAs speak RoCE, and no index holds for all of them")
    if spans := _one_range(network.rails):
        why = "only GIDs with addresses of the rails count"
        yield Setting("NCCL_IB_ADDR_RANGE", spans, why, "subnets of the Topology's rails")


def _one_range(rails: Sequence[Rail]) -> str:
    """Return the narrowest range that holds all rails; empty where they state no subnets."""
    nets = [ipaddress.ip_network(rail.subnet) for rail in rails if rail.subnet]
    fours = [net for net in nets if isinstance(net, ipaddress.IPv4Network)]
    if not fours or len(fours) != len(rails):
        return ""
    span = fours[0]
    while not all(net.subnet_of(span) for net in fours):
        span = span.supernet()
    return str(span) if span.prefixlen else ""


def _flow(rank: Rank, network: Network) -> Iterator[Setting]:
    if not rank.hcas:
        return
    if network.dscp is not None:
        why = f"DSCP {network.dscp} times 4: the class that the switches pause"
        yield Setting("NCCL_IB_TC", str(network.dscp << 2), why, "traffic class of the NICs")
    rails = {hca.rail for hca in rank.hcas if hca.rail}
    if len(rails) > 1:
        why = f"{len(rails)} rails: a ring stays on its rail, and no traffic crosses the spines"
        yield Setting("NCCL_CROSS_NIC", "0", why, "rails of the HCAs")
        why = "traffic to another rail goes over NVLink to the GPU beside its NIC"
        yield Setting("NCCL_PXN_DISABLE", "0", why, "rails of the HCAs")
    roce = any(hca.link == "ethernet" for hca in rank.hcas)
    if network.tiers > 1 and roce:
        why = f"{network.tiers} tiers: several flows per connection spread over the spines"
        yield Setting("NCCL_IB_QPS_PER_CONNECTION", str(FLOWS), why, "tiers of the Topology")
    why = "a flap of a link is lived through instead of ending the job with error 12"
    yield Setting("NCCL_IB_TIMEOUT", str(TIMEOUT), why, "Lockstep")
    yield Setting("NCCL_IB_RETRY_CNT", str(RETRIES), "as often as the card allows", "Lockstep")
    if all(hca.beside_gpu for hca in rank.hcas):
        why = "each HCA hangs on a PCIe root with a GPU: transfers bypass the CPU's memory"
        yield Setting("NCCL_NET_GDR_LEVEL", "PHB", why, "PCIe roots of the node's devices")


def _sockets(network: Network) -> Iterator[Setting]:
    if not network.socket:
        return
    why = "the netdev with the pods' addresses, exactly"
    source = "default route of the node"
    yield Setting("NCCL_SOCKET_IFNAME", f"={network.socket}", why, source)
    yield Setting("GLOO_SOCKET_IFNAME", network.socket, why, source)
    yield Setting("OMPI_MCA_btl_tcp_if_include", network.socket, why, source)


def _doubt(one: Setting, own: str, rank: Rank) -> str:
    """Return what speaks against the user's value; empty where nothing does."""
    if one.name == "NCCL_IB_HCA":
        wanted = own.removeprefix("=").removeprefix("^").split(",")
        named = {part.split(":")[0] for part in wanted}
        there = {hca.name for hca in rank.hcas}
        if own.startswith("^"):
            return ""
        missing = sorted(named - there) if own.startswith("=") else []
        if missing:
            return f"{', '.join(missing)} was not handed out to this pod"
        if not own.startswith("=") and any(
            a != b and b.startswith(a) for a in named for b in there
        ):
            return f"without = it also takes what begins with {own}"
        return ""
    if one.name == ONE_GID:
        return SHARED_GID
    if one.name == "NCCL_IB_TC" and own != one.value:
        return f"the switches pause traffic class {one.value}; this one may be dropped"
    return ""


def _stated(rank: Rank, known: set[str]) -> Iterator[Setting]:
    """Yield what the user sets and Lockstep would not."""
    for name, value in sorted(rank.env.items()):
        if name in known or not name.startswith(("NCCL_", "GLOO_", "UCX_", "RCCL_")):
            continue
        doubt = ""
        if name == ONE_GID:
            doubt = SHARED_GID
        if name in ("NCCL_IB_DISABLE", "NCCL_NET_DISABLE") and value == "1" and rank.hcas:
            doubt = "RDMA is off although HCAs were handed out"
        why = "for debugging; Lockstep never sets it" if name in DEBUG else "only you know"
        yield Setting(name, value, why, "the job", value, doubt)
