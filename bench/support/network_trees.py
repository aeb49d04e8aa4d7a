"""Made trees of a GPU node with RoCE NICs, and ways to break each group of checks in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
QOS = """DCBX mode: OS controlled
Priority trust state: {trust}
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
default priority:
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     {pfc}
\tbuffer      0   0   0   1   0   0   0   0
"""
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n"
LIMITS += "Max locked memory         {memlock}            unlimited            bytes\n"


@dataclass
class NodeTree:
    """A node with GPUs and as many RoCE NICs, pairwise beside each other; change it, then write."""

    name: str = "node1"
    number: int = 1
    nics: int = 4
    changed: dict[str, str] = field(default_factory=dict)
    """Files that are other than in a sound tree, by path; an empty text removes one."""
    addresses: list[Json] = field(default_factory=list)
    rules: list[Json] = field(default_factory=list)
    routes: list[Json] = field(default_factory=list)
    neighbours: list[Json] = field(default_factory=list)
    lldp: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        for n in range(self.nics):
            address = self.address(n)
            info = {"family": "inet", "local": address, "prefixlen": 16}
            self.addresses.append({"ifname": f"ens{n}", "addr_info": [info], "mtu": 9000})
            self.rules.append({"priority": 100 + n, "src": address, "table": str(100 + n)})
            route = {"dst": f"10.{60 + n}.0.0/16", "dev": f"ens{n}", "table": str(100 + n)}
            self.routes.append(route)
            peer = {"dst": f"10.{60 + n}.0.77", "dev": f"ens{n}", "state": ["REACHABLE"]}
            self.neighbours.append(peer)
            body = {"id": {"type": "mac", "value": "aa:bb:cc:00:00:01"}, "descr": "switch"}
            pause = {"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,08"}
            told = {
                "via": "LLDP",
                "chassis": {f"leaf{n}": body},
                "port": {"id": {"type": "ifname", "value": f"Eth{self.number}"}, "mfs": "9216"},
                "vlan": [{"vlan-id": str(100 + n), "pvid": True}],
                "unknown-tlvs": {"unknown-tlv": [pause]},
            }
            self.lldp.append({f"ens{n}": told})

    def address(self, n: int) -> str:
        return f"10.{60 + n}.0.{self.number}"

    def pci(self, n: int) -> str:
        return f"0000:{0x10 * (n + 1):02x}:00.0"

    def place(self, n: int) -> str:
        return f"{self.name}/mlx5_{n}"

    def set(self, path: str, text: str) -> None:
        self.changed[path] = text

    def write(self, root: Path) -> Path:
        """Write the tree below *root*; return where."""
        place = root / self.name
        files = {**dict(self._files()), **self.changed}
        for path, text in files.items():
            if text == "":
                continue
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text + "\n")
        for n in range(self.nics):
            self._links(place, n)
        return place

    def _links(self, place: Path, n: int) -> None:
        for kind, address in (("nic", self.pci(n)), ("gpu", self.pci(n).replace("00.0", "01.0"))):
            hangs = place / f"sys/devices/pci0000:{n}0/0000:{n}0:01.0/{address}"
            hangs.mkdir(parents=True, exist_ok=True)
            bus = place / "sys/bus/pci/devices"
            bus.mkdir(parents=True, exist_ok=True)
            (bus / address).symlink_to(hangs.resolve())
            if kind == "nic":
                for where in (f"sys/class/net/ens{n}", f"sys/class/infiniband/mlx5_{n}"):
                    if (place / where).is_dir():
                        (place / where / "device").symlink_to(hangs.resolve())

    def _files(self) -> Iterator[tuple[str, str]]:
        for n in range(self.nics):
            yield from self._nic(n)
            yield from self._card(n)
        yield "proc/modules", "nvidia 1 0 - Live\nnvidia_peermem 1 0 - Live\nmlx5_core 1 0 - Live"
        yield "proc/cmdline", "ro quiet"
        yield "proc/self/limits", LIMITS.format(memlock="unlimited")
        yield "proc/self/status", "CapEff:\t000001ffffffffff"
        for name, value in (("arp_ignore", "1"), ("arp_announce", "2"), ("rp_filter", "2")):
            for netdev in ("all", *(f"ens{n}" for n in range(self.nics))):
                yield f"proc/sys/net/ipv4/conf/{netdev}/{name}", value
        yield "tools/ip-addr", json.dumps(self.addresses)
        yield "tools/ip-rule", json.dumps(self.rules)
        yield "tools/ip-route", json.dumps(self.routes)
        yield "tools/ip-neigh", json.dumps(self.neighbours)
        yield "tools/rdma-system", json.dumps([{"netns": "shared"}])
        yield "tools/lldp", json.dumps({"lldp": {"interface": self.lldp}})
        yield "tools/lspci", "\n\n".join(self._bridge(n) for n in range(self.nics))

    def _bridge(self, n: int) -> str:
        return f"{n}0:01.0 PCI bridge: bridge\n\tACSCtl: SrcValid- ReqRedir- CmpltRedir-"

    def _nic(self, n: int) -> Iterator[tuple[str, str]]:
        net, hca = f"sys/class/net/ens{n}", f"sys/class/infiniband/mlx5_{n}"
        yield f"{net}/type", "1"
        yield f"{net}/mtu", "9000"
        yield f"{net}/speed", "400000"
        yield f"{net}/operstate", "up"
        yield f"{net}/carrier", "1"
        yield f"{net}/carrier_changes", "2"
        yield f"{net}/address", f"aa:00:00:00:{self.number:02x}:{n:02x}"
        for side in ("roce_np", "roce_rp"):
            yield f"{net}/ecn/{side}/enable/3", "1"
        yield f"{hca}/fw_ver", "28.39.1002"
        port = f"{hca}/ports/1"
        yield f"{port}/state", "4: ACTIVE"
        yield f"{port}/phys_state", "5: LinkUp"
        yield f"{port}/rate", "400 Gb/sec (4X NDR)"
        yield f"{port}/link_layer", "Ethernet"
        packed = "".join(f"{int(part):02x}" for part in self.address(n).split("."))
        second = f"0000:0000:0000:0000:0000:ffff:{packed[:4]}:{packed[4:]}"
        for index, (gid, kind) in enumerate((("fe80::1", "RoCE v2"), (second, "RoCE v2"))):
            yield f"{port}/gids/{index}", gid
            yield f"{port}/gid_attrs/types/{index}", kind
            yield f"{port}/gid_attrs/ndevs/{index}", f"ens{n}"
        for name in ("symbol_error", "link_downed"):
            yield f"{port}/counters/{name}", "0"
        for name in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err"):
            yield f"{port}/hw_counters/{name}", "0"
        yield f"{hca}/tc/1/traffic_class", "Global tclass=106"
        yield f"sys/class/infiniband_verbs/uverbs{n}/ibdev", f"mlx5_{n}"
        yield f"dev/infiniband/uverbs{n}", " "
        yield f"tools/qos-ens{n}", QOS.format(trust="dscp", pfc="0   0   0   1   0   0   0   0")

    def _card(self, n: int) -> Iterator[tuple[str, str]]:
        base = f"sys/devices/pci0000:{n}0/0000:{n}0:01.0"
        about = ((self.pci(n), "0x15b3", "0x020000"), (self._gpu(n), "0x10de", "0x030200"))
        for address, vendor, class_ in about:
            place = f"{base}/{address}"
            yield f"{place}/vendor", vendor
            yield f"{place}/device", "0x2330" if vendor == "0x10de" else "0x1021"
            yield f"{place}/class", class_
            yield f"{place}/numa_node", "0"
            for name in ("max", "current"):
                yield f"{place}/{name}_link_speed", "32.0 GT/s PCIe"
                yield f"{place}/{name}_link_width", "16"

    def _gpu(self, n: int) -> str:
        return self.pci(n).replace("00.0", "01.0")


@dataclass(frozen=True)
class Case:
    """One way to break a node: what must be said, of which group, at which place."""

    group: str
    name: str
    place: str
    states: tuple[str, ...]
    change: Callable[[NodeTree], None]


def _file(path: str, text: str) -> Callable[[NodeTree], None]:
    return lambda tree: tree.set(path, text)


def cases() -> list[Case]:
    """Return 60 cases: each group of those that a tree shows, at different NICs."""
    found: list[Case] = []

    def add(group: str, name: str, n: int, text: Callable[[int], tuple[str, str]]) -> None:
        path, said = text(n)
        states = ("fail", "warn")
        found.append(Case(group, f"{name} {n}", f"mlx5_{n}", states, _file(path, said)))

    def nic(n: int, name: str) -> str:
        return f"sys/devices/pci0000:{n}0/0000:{n}0:01.0/0000:{0x10 * (n + 1):02x}:00.0/{name}"

    ib, net = "sys/class/infiniband/mlx5_{}/", "sys/class/net/ens{}/"
    qos = QOS.format
    usual, off = "0   0   0   1   0   0   0   0", "0   0   0   0   0   0   0   0"
    for n in (0, 2, 3):
        add("pcie", "speed", n, lambda n: (nic(n, "current_link_speed"), "8.0 GT/s PCIe"))
        add("pcie", "width", n, lambda n: (nic(n, "current_link_width"), "8"))
        add("port", "down", n, lambda n: ((ib + "ports/1/state").format(n), "1: DOWN"))
        add("port", "rate", n, lambda n: ((ib + "ports/1/rate").format(n), "200 Gb/sec (4X HDR)"))
        add("port", "mtu", n, lambda n: ((net + "mtu").format(n), "1500"))
        add("port", "mtu above", n, lambda n: ((net + "mtu").format(n), "9500"))
        add(
            "port", "symbols", n, lambda n: ((ib + "ports/1/counters/symbol_error").format(n), "99")
        )
        add("port", "flaps", n, lambda n: ((net + "carrier_changes").format(n), "40"))
        add("limits", "verbs", n, lambda n: (f"sys/class/infiniband_verbs/uverbs{n}/ibdev", ""))
        add("limits", "file", n, lambda n: (f"dev/infiniband/uverbs{n}", ""))
        add(
            "gid",
            "version",
            n,
            lambda n: ((ib + "ports/1/gid_attrs/types/1").format(n), "IB/RoCE v1"),
        )
        add("gid", "foreign", n, lambda n: ((ib + "ports/1/gids/1").format(n), "::ffff:10.9.9.9"))
        add("lossless", "trust", n, lambda n: (f"tools/qos-ens{n}", qos(trust="pcp", pfc=usual)))
        add("lossless", "no pfc", n, lambda n: (f"tools/qos-ens{n}", qos(trust="dscp", pfc=off)))
        add("lossless", "ecn", n, lambda n: ((net + "ecn/roce_rp/enable/3").format(n), "0"))
        add("lossless", "class", n, lambda n: ((ib + "tc/1/traffic_class").format(n), "tclass=0"))
        add("odd", "firmware", n, lambda n: ((ib + "fw_ver").format(n), "26.1"))
    found += _others()
    return found


def _others() -> list[Case]:
    both = ("fail", "warn")

    def rule(tree: NodeTree) -> None:
        _same_subnet(tree)
        del tree.rules[1]

    def table(tree: NodeTree) -> None:
        _same_subnet(tree)
        tree.routes[1]["dev"] = "ens0"

    def ignore(tree: NodeTree) -> None:
        _same_subnet(tree)
        for which in ("all", "ens1"):
            tree.set(f"proc/sys/net/ipv4/conf/{which}/arp_ignore", "0")

    def filtered(tree: NodeTree) -> None:
        for which in ("all", "ens1"):
            tree.set(f"proc/sys/net/ipv4/conf/{which}/rp_filter", "1")

    def silent(tree: NodeTree) -> None:
        tree.neighbours[1]["state"] = ["FAILED"]

    def tagged(tree: NodeTree) -> None:
        info = {"info_kind": "vlan", "info_data": {"id": 999}}
        tree.addresses.append({"ifname": "ens1.999", "link": "ens1", "linkinfo": info})

    def far(tree: NodeTree) -> None:
        tlv = tree.lldp[1]["ens1"]["unknown-tlvs"]["unknown-tlv"][0]
        tlv["value"] = "08,10"

    def acs(tree: NodeTree) -> None:
        words = "10:01.0 PCI bridge: bridge\n\tACSCtl: SrcValid+ ReqRedir+ CmpltRedir+"
        tree.set("tools/lspci", words)

    memlock = _file("proc/self/limits", LIMITS.format(memlock="65536"))
    return [
        Case("arp", "no rule", "mlx5_1", both, rule),
        Case("arp", "wrong table", "mlx5_1", both, table),
        Case("arp", "ignore", "mlx5_1", both, ignore),
        Case("arp", "filter", "mlx5_1", both, filtered),
        Case("arp", "silent", "mlx5_1", both, silent),
        Case("vlan", "not carried", "mlx5_1", both, tagged),
        Case("lossless", "far end", "mlx5_1", both, far),
        Case("pcie", "acs", "", both, acs),
        Case("limits", "memlock", "", both, memlock),
    ]


def _same_subnet(tree: NodeTree) -> None:
    """Put all NICs into one subnet, each with its rule and table."""
    for n in range(tree.nics):
        address = f"10.60.{n}.{tree.number}"
        tree.addresses[n]["addr_info"][0]["local"] = address
        tree.rules[n]["src"] = address
        tree.routes[n]["dst"] = "10.60.0.0/16"
        packed = "".join(f"{int(part):02x}" for part in address.split("."))
        gid = f"0000:0000:0000:0000:0000:ffff:{packed[:4]}:{packed[4:]}"
        tree.set(f"sys/class/infiniband/mlx5_{n}/ports/1/gids/1", gid)
