"""A fabric's cables as a graph, its tiers, and the cables that are wrong.

Switches that hosts hang on are the first tier, those above them the second, and so on. A domain of
tier k is what holds together when only the tiers up to k are looked at: a leaf alone, or the leaves
of all rails of the same hosts. Cables that contradict what most of their neighbours show are named
and left out, so that one wrong cable does not make two domains one.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.wire import Wire

MOST_TIERS: Final = 14
_NUMBER: Final = re.compile(r"(\d+)(?!.*\d)")
_LANE: Final = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.3,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""Gbit/s of a lane."""
NAMES: Final = ("leaf", "spine", "core")
"""What the tiers above a node are called, the nearest first; wider ones are numbered."""


class Fault(Wire, frozen=True):
    """What is wrong with a fabric: its kind, the cable or device, and what shows it."""

    kind: str
    place: str
    evidence: str = ""


class Found(Wire, frozen=True):
    """The tiers of a fabric, the nearest first, and for each node its domain in each of them."""

    tiers: list[str] = []
    nodes: Mapping[str, list[str]] = {}
    faults: list[Fault] = []


@dataclass(frozen=True, slots=True, order=True)
class End:
    """One end of a cable."""

    device: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.device}[{self.port}]" if self.port else self.device


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two ends; *rate* is how the source writes it (``4xHDR``)."""

    one: End
    other: End
    rate: str = ""

    def __str__(self) -> str:
        low, high = sorted((self.one, self.other))
        return f"{low} - {high}"


@dataclass
class Fabric:
    """Hosts, switches and the cables between them; a host's port names its rail."""

    hosts: set[str] = field(default_factory=set)
    switches: set[str] = field(default_factory=set)
    cables: list[Cable] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unnamed: set[str] = field(default_factory=set)
    """Hosts of which only one adapter's GUID is known."""


def resolve(fabric: Fabric) -> Found:
    """Return the tiers and domains of a fabric, and what is wrong with it."""
    cables, faults = _sound(fabric)
    levels = _levels(fabric, cables)
    strays = list(_hosts_above(fabric, cables, levels))
    wrong = {id(cable) for cable, _ in strays}
    if strays:
        cables = [cable for cable in cables if id(cable) not in wrong]
        levels = _levels(fabric, cables)
    level_faults = list(_between_tiers(cables, levels))
    wrong = {id(cable) for cable, _ in level_faults}
    up = [cable for cable in cables if id(cable) not in wrong]
    foreign = list(_foreign(up, levels))
    gone = {id(cable) for cable, _ in foreign}
    named = {id(cable) for cable, _ in (*strays, *level_faults, *foreign)}
    rails = [one for one in _wrong_rails(fabric, up) if id(one[0]) not in named]
    kept = [cable for cable in up if id(cable) not in gone]
    faults += [fault for _, fault in (*strays, *level_faults, *foreign, *rails)]
    faults += _slow(up, levels)
    faults += _thinner(up, levels)
    faults += _missing(fabric, up, levels, {fault.place for fault in faults})
    tiers = max((level for level in levels.values()), default=0)
    faults += [
        Fault(kind="island", place=host, evidence="no cable leads to a switch")
        for host in sorted(fabric.hosts)
        if host not in levels
    ]
    domains = _domains(fabric, kept, levels, tiers)
    names = [NAMES[n] if n < len(NAMES) else f"tier-{n + 1}" for n in range(tiers)]
    return Found(tiers=names, nodes=domains, faults=[*fabric.faults, *faults])


def _sound(fabric: Fabric) -> tuple[list[Cable], list[Fault]]:
    """Return each cable once, and faults of those that lead back to where they begin."""
    seen: dict[tuple[End, End], Cable] = {}
    faults = []
    for cable in fabric.cables:
        if cable.one.device == cable.other.device:
            told = "both ends are in the same device"
            faults.append(Fault(kind="loop", place=str(cable), evidence=told))
            continue
        low, high = sorted((cable.one, cable.other))
        seen.setdefault((low, high), cable)
    return list(seen.values()), faults


def _levels(fabric: Fabric, cables: Iterable[Cable]) -> dict[str, int]:
    """Return the tier of each device: 0 for hosts that have a cable, 1 for leaves."""
    near: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        near[cable.one.device].add(cable.other.device)
        near[cable.other.device].add(cable.one.device)
    levels = {host: 0 for host in fabric.hosts if near[host]}
    front, level = set(levels), 0
    while front and level < MOST_TIERS:
        level += 1
        front = {far for one in front for far in near[one] if far not in levels} - fabric.hosts
        levels |= dict.fromkeys(front, level)
    return levels


def _hosts_above(
    fabric: Fabric, cables: Iterable[Cable], levels: Mapping[str, int]
) -> Iterator[tuple[Cable, Fault]]:
    """Yield hosts that hang on a switch which otherwise only switches hang on, as a spine."""
    cables = list(cables)
    hanging: dict[str, list[Cable]] = defaultdict(list)
    above: Counter[str] = Counter()
    for cable in cables:
        for end, far in ((cable.one, cable.other), (cable.other, cable.one)):
            if far.device in fabric.hosts:
                hanging[end.device].append(cable)
            else:
                above[end.device] += levels.get(far.device) == 1
    usual = statistics.median(len(one) for one in hanging.values()) if hanging else 0
    for switch, those in sorted(hanging.items()):
        leaves = sum(
            1
            for other, far in _neighbours(cables, switch)
            if other not in fabric.hosts and len(hanging.get(other, ())) > len(those) and far
        )
        if len(those) * 3 <= usual and leaves >= 2:
            for cable in those:
                host = next(e for e in (cable.one, cable.other) if e.device in fabric.hosts)
                told = f"{leaves} leaves hang on {switch}, which makes it no leaf"
                yield cable, Fault(kind="wrong-cable", place=str(cable), evidence=f"{host}: {told}")


def _neighbours(cables: Iterable[Cable], device: str) -> Iterator[tuple[str, bool]]:
    for cable in cables:
        if cable.one.device == device:
            yield cable.other.device, True
        elif cable.other.device == device:
            yield cable.one.device, True


def _between_tiers(
    cables: Iterable[Cable], levels: Mapping[str, int]
) -> Iterator[tuple[Cable, Fault]]:
    """Yield cables inside a tier, or past one: they close a loop that no tree has."""
    for cable in cables:
        one, other = levels.get(cable.one.device), levels.get(cable.other.device)
        if one is None or other is None:
            continue
        if one == other:
            told = f"joins two switches of tier {one}"
            yield cable, Fault(kind="loop", place=str(cable), evidence=told)


def _foreign(cables: Iterable[Cable], levels: Mapping[str, int]) -> Iterator[tuple[Cable, Fault]]:
    """Yield cables to a parent that has no children in common with the child's other parents."""
    parents: dict[str, Counter[str]] = defaultdict(Counter)
    children: dict[str, set[str]] = defaultdict(set)
    upward = []
    for cable in cables:
        one, other = cable.one.device, cable.other.device
        if levels.get(one, -1) > levels.get(other, -1):
            one, other = other, one
        if one in levels and levels.get(other) == levels[one] + 1:
            parents[one][other] += 1
            children[other].add(one)
            upward.append((one, other, cable))
    for child, parent, cable in upward:
        mates = [one for one in parents[child] if one != parent]
        if len(mates) < 2 or len(children[parent]) < 2:
            continue
        shared = [len((children[parent] & children[one]) - {child}) for one in mates]
        if any(shared):
            continue
        together = any(
            (children[one] & children[two]) - {child}
            for index, one in enumerate(mates)
            for two in mates[index + 1 :]
        )
        if together:
            told = f"no other device under {parent} hangs on what {child} hangs on"
            yield cable, Fault(kind="wrong-cable", place=str(cable), evidence=told)


def _wrong_rails(fabric: Fabric, cables: Iterable[Cable]) -> Iterator[tuple[Cable, Fault]]:
    """Yield cables of hosts that hang on a leaf by another port than the leaf's other hosts."""
    ports: dict[str, list[tuple[str, Cable]]] = defaultdict(list)
    several: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        for end, far in ((cable.one, cable.other), (cable.other, cable.one)):
            if end.device in fabric.hosts and far.device not in fabric.hosts:
                ports[far.device].append((end.port, cable))
                several[end.device].add(far.device)
    for leaf, those in sorted(ports.items()):
        # ``HCA-6`` and ``mlx5_5`` are two ways to name cards, and no two rails.
        styles: dict[str, list[tuple[str, Cable]]] = defaultdict(list)
        for port, cable in those:
            styles[_NUMBER.sub("", port)].append((port, cable))
        for alike in styles.values():
            usual, often = Counter(port for port, _ in alike).most_common(1)[0]
            if often < 3 or often * 4 < len(alike) * 3:
                continue
            told = f"{often} of {len(alike)} hosts hang on {leaf} by {usual}"
            for port, cable in alike:
                if port != usual:
                    evidence = f"{told}, this one by {port}"
                    yield cable, Fault(kind="wrong-rail", place=str(cable), evidence=evidence)


def _slow(cables: Iterable[Cable], levels: Mapping[str, int]) -> Iterator[Fault]:
    """Return faults of cables that are slower than almost all of their tier."""
    by_tier: dict[int, list[Cable]] = defaultdict(list)
    for cable in cables:
        if cable.rate:
            tier = min(levels.get(e.device, MOST_TIERS) for e in (cable.one, cable.other))
            by_tier[tier].append(cable)
    for those in by_tier.values():
        usual, often = Counter(cable.rate for cable in those).most_common(1)[0]
        if often < 2 or often * 4 < len(those) * 3:
            continue
        yield from (
            Fault(kind="slow-link", place=str(cable), evidence=f"{cable.rate}; others {usual}")
            for cable in those
            if cable.rate != usual and not gigabits(cable.rate) > gigabits(usual) > 0
        )


def gigabits(rate: str) -> float:
    """Return Gbit/s of a rate as ``4xNDR`` or ``100GbaseCR4``; 0.0 where it is neither."""
    if (lanes := re.fullmatch(r"(\d{1,2})x([A-Z]DR(?:10)?)", rate)) is not None:
        return int(lanes[1]) * _LANE.get(lanes[2], 0.0)
    found = re.match(r"(\d{1,6})(?:\.\d+)?(G?)", rate)
    return float(found[1]) / (1 if found[2] else 1000) if found else 0.0


def _thinner(cables: Iterable[Cable], levels: Mapping[str, int]) -> Iterator[Fault]:
    """Return pairs of switches with fewer cables between them than almost all pairs alike."""
    pairs: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for cable in cables:
        low, high = sorted((levels.get(e.device, 0), e.device) for e in (cable.one, cable.other))
        if low[0]:
            pairs[low[0]][low[1], high[1]] += 1
    for counted in pairs.values():
        usual, often = Counter(counted.values()).most_common(1)[0]
        if len(counted) < 4 or often * 10 < len(counted) * 9:
            continue
        for (low_name, high_name), count in sorted(counted.items()):
            if count < usual:
                told = f"{count} of the {usual} cables that almost all pairs of switches have"
                place = f"{low_name} - {high_name}"
                yield Fault(kind="missing-cable", place=place, evidence=told)


def _missing(
    fabric: Fabric, cables: Iterable[Cable], levels: Mapping[str, int], known: set[str]
) -> Iterator[Fault]:
    """Return devices that have fewer cables upward than all others of their tier.

    Where adapters state no host, hosts are not compared: what one lacks may be there unnamed.
    """
    upward: Counter[str] = Counter()
    for cable in cables:
        one, other = cable.one.device, cable.other.device
        low = one if levels.get(one, 0) < levels.get(other, 0) else other
        upward[low] += 1
    for tier in sorted(set(levels.values()) - ({0} if fabric.unnamed else set())):
        those = sorted(device for device, level in levels.items() if level == tier)
        counts = Counter(upward[one] for one in those)
        usual, often = counts.most_common(1)[0]
        if len(those) < 3 or len(those) - often > max(1, len(those) // 4) or not usual:
            continue
        for one in those:
            blamed = any(f"{one}[" in place or f"{one} - " in place for place in known)
            if 0 < upward[one] < usual and not blamed:
                told = f"{upward[one]} cables upward; others of its tier have {usual}"
                yield Fault(kind="missing-cable", place=one, evidence=told)


def _domains(
    fabric: Fabric, cables: Iterable[Cable], levels: Mapping[str, int], tiers: int
) -> dict[str, list[str]]:
    """Return for each host its domain in each tier, the nearest first."""
    found: dict[str, list[str]] = {host: [] for host in sorted(fabric.hosts) if host in levels}
    root = {device: device for device in levels}

    def top(device: str) -> str:
        while root[device] != device:
            root[device] = root[root[device]]
            device = root[device]
        return device

    by_tier: dict[int, list[Cable]] = defaultdict(list)
    for cable in cables:
        ends = (levels.get(cable.one.device), levels.get(cable.other.device))
        if None not in ends:
            by_tier[max(level for level in ends if level is not None)].append(cable)
    for tier in range(1, tiers + 1):
        for cable in by_tier[tier]:
            root[top(cable.one.device)] = top(cable.other.device)
        names: dict[str, str] = {}
        for device in sorted((d for d, level in levels.items() if level == tier), key=natural):
            names.setdefault(top(device), device)
        for host, listed in found.items():
            listed.append(names.get(top(host), listed[-1] if listed else ""))
    return found


def natural(name: str) -> list[tuple[int, int | str]]:
    """Return a sort key by which ``leaf2`` comes before ``leaf10``."""
    return [(0, int(p)) if p.isdecimal() else (1, p) for p in re.split(r"(\d+)", name) if p]
