"""Simulated networks: matrices with faults, and random fabrics with their true trees."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from lockstep.devices.network.core.fabric import Cable, End, Fabric
from lockstep.devices.network.core.rounds import sampled
from lockstep.devices.network.core.verdict import Flow

RATE = 50.0


@dataclass
class Network:
    """Nodes under leaves of equal size, with rails; faults are by kind and place."""

    nodes: int
    leaf: int
    rails: int
    rng: random.Random
    noise: float = 0.05
    faults: dict[str, str] = field(default_factory=dict)

    def name(self, number: int) -> str:
        return f"n{number:04}"

    def leaf_of(self, number: int) -> str:
        return f"leaf{number // self.leaf:03}"

    @property
    def leaves(self) -> dict[str, str]:
        return {self.name(i): self.leaf_of(i) for i in range(self.nodes)}

    def draw(self, count: int, kinds: tuple[str, ...]) -> None:
        """Break *count* things, no two of them under one leaf."""
        leaves = self.rng.sample(range(self.nodes // self.leaf), count)
        for one in leaves:
            kind = self.rng.choice(kinds)
            node = self.name(one * self.leaf + self.rng.randrange(self.leaf))
            rail = f"rail{self.rng.randrange(self.rails)}"
            on_rail = f"{node}/{rail}"
            place = {"leaf": f"leaf{one:03}", "uplink": f"leaf{one:03}", "node": node}
            self.faults[place.get(kind, on_rail)] = kind

    def flows(self, peers: int, seed: int) -> list[Flow]:
        """Return what all would measure."""
        domains = {i: self.leaf_of(i) for i in range(self.nodes)}
        found = []
        for pairs in sampled(self.nodes, peers, domains, seed):
            for a, b in pairs:
                for rail in range(self.rails):
                    found += [self._flow(a, b, rail), self._flow(b, a, rail)]
        return found

    def _flow(self, a: int, b: int, rail: int) -> Flow:
        share, resent = 1.0, 0.0
        name = f"rail{rail}"
        ends = ((self.name(a), True), (self.name(b), False))
        for node, sends in ends:
            kind = self.faults.get(f"{node}/{name}", "")
            if self.faults.get(node) == "node":
                share = min(share, 0.5)
            if kind == "nic":
                share = min(share, 0.5)
            if kind == "cable" or (kind == "one-way" and sends):
                share, resent = min(share, 0.3), 40.0
        one, other = self.leaf_of(a), self.leaf_of(b)
        if "leaf" in (self.faults.get(one), self.faults.get(other)):
            share = min(share, 0.5)
        if one != other and "uplink" in (self.faults.get(one), self.faults.get(other)):
            share = min(share, 0.5)
        noisy = max(0.0, share * (1 + self.rng.gauss(0, self.noise)))
        return Flow(self.name(a), self.name(b), name, RATE * noisy, resent)


@dataclass
class Drawn:
    """A random fabric, its true domains from the nearest on, and what was broken."""

    fabric: Fabric
    nodes: dict[str, list[str]]
    broken: str = ""


def fat_tree(rng: random.Random, *, broken: bool) -> Drawn:
    """Draw a tree of two or three tiers, of one rail or several, with a fault or without."""
    rails = rng.choice((1, 1, 4, 8))
    tiers = rng.choice((2, 3))
    pods = rng.randint(2, 3) if tiers == 3 else 1
    spines, groups, size = rng.randint(3, 4), rng.randint(3, 4), rng.randint(4, 6)
    fabric, truth = Fabric(), {}
    cables: list[Cable] = []
    for pod in range(pods):
        above = [f"spine-{pod}-{n}" for n in range(spines)]
        for number, spine in enumerate(above):
            for core in range(4) if tiers == 3 else ():
                cables.append(Cable(End(spine, f"u{core}"), End(f"core-{core}", f"{pod}.{number}")))
        for group in range(groups):
            leaves = [f"leaf-{pod}-{group}-{rail}" for rail in range(rails)]
            for rail, leaf in enumerate(leaves):
                for number, spine in enumerate(above):
                    port = f"d{group}.{rail}"
                    cables.append(Cable(End(leaf, f"u{number}"), End(spine, port)))
                for host in range(size):
                    name = f"host-{pod}-{group}-{host}"
                    fabric.hosts.add(name)
                    cables.append(Cable(End(name, f"mlx5_{rail}"), End(leaf, f"h{host}")))
                    truth[name] = [leaves[0], above[0], *(["core-0"] if tiers == 3 else [])]
    fabric.cables = cables
    fabric.switches = {e.device for c in cables for e in (c.one, c.other)} - fabric.hosts
    told = _break(fabric, rng) if broken else ""
    rng.shuffle(fabric.cables)
    return Drawn(fabric, truth, told)


def _break(fabric: Fabric, rng: random.Random) -> str:
    """Break one cable; return the device at which the fault must be named."""
    up = [c for c in fabric.cables if c.one.device.startswith("leaf")]
    cable = rng.choice(up)
    kind = rng.choice(("missing", "loop", "cross"))
    if kind == "missing":
        fabric.cables.remove(cable)
        return cable.one.device
    leaves = sorted({c.one.device for c in up} - {cable.one.device})
    if kind == "loop":
        other = rng.choice(leaves)
        fabric.cables.append(Cable(End(cable.one.device, "x1"), End(other, "x1")))
        return cable.one.device
    host = sorted(fabric.hosts)[0]
    spine = cable.other.device
    fabric.cables.append(Cable(End(host, "mlx5_x"), End(spine, "x9")))
    return spine
