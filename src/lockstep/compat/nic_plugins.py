"""The SR-IOV and the shared RDMA device plugins' own ConfigMaps, and the resources they make.

Both select NICs by the same kinds of words; a NIC belongs to the first resource that selects it, as
it does there. The shared plugin hands one HCA out many times (``rdmaHcaMax``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SRIOV_PREFIX: Final = "intel.com"
SHARED_PREFIX: Final = "rdma"
MOST_SHARED: Final = 100_000
_PF: Final = re.compile(r"([^#]+)(?:#([\d,\-]+))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A NIC as selectors see it; *pf* is its physical function's netdev, *vf* its number there.

    ``vendor`` and ``device`` are hexadecimal without ``0x``.
    """

    name: str
    vendor: str = ""
    device: str = ""
    driver: str = ""
    netdev: str = ""
    pci: str = ""
    pf: str = ""
    vf: int | None = None
    link: str = ""
    rdma: bool = False


@dataclass(frozen=True, slots=True)
class Selector:
    """Words that a NIC must match: one of each list that is not empty."""

    vendors: Sequence[str] = ()
    devices: Sequence[str] = ()
    drivers: Sequence[str] = ()
    pf_names: Sequence[str] = ()
    netdevs: Sequence[str] = ()
    addresses: Sequence[str] = ()
    links: Sequence[str] = ()
    rdma: bool = False

    def selects(self, one: Candidate) -> bool:
        """Tell whether all that is stated holds of a NIC."""
        plain = (
            (self.vendors, one.vendor),
            (self.devices, one.device),
            (self.drivers, one.driver),
            (self.netdevs, one.netdev),
            (self.addresses, one.pci),
            (self.links, "infiniband" if one.link == "infiniband" else "ether"),
        )
        if any(words and value not in words for words, value in plain):
            return False
        if self.rdma and not one.rdma:
            return False
        return not self.pf_names or any(_of_pf(words, one) for words in self.pf_names)


@dataclass(frozen=True, slots=True)
class NicResource:
    """A resource: its whole name, what it selects, and what comes with it.

    A *shared* one is *times* handles, each of which is all of its NICs, as in the shared plugin.
    Device files of RDMA come with *rdma*, those of vhost-net with *vhost*.
    """

    name: str
    selectors: Sequence[Selector]
    times: int = 1
    topology: bool = True
    shared: bool = False
    rdma: bool = False
    vhost: bool = False

    @property
    def variable(self) -> str:
        """Return the variable that names the NICs which a container has."""
        return f"PCIDEVICE_{re.sub(r'[^A-Z0-9]', '_', self.name.upper())}"


@dataclass
class Made:
    """The NICs of each resource by name, and what is wrong."""

    resources: dict[str, list[str]] = field(default_factory=dict)
    amounts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read(config: str) -> tuple[list[NicResource], list[str]]:
    """Return the resources of a plugin's ``config.json`` and what is wrong with single ones.

    Raises:
        ValueError: when it is neither plugin's, naming what is missing.
    """
    try:
        tree = json.loads(config)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"config.json: no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ValueError("config.json: no object")
    lists = {"resourceList": _sriov, "configList": _shared}
    for key, make in lists.items():
        listed = tree.get(key)
        if isinstance(listed, list):
            return _each(key, listed, make)
    raise ValueError(
        "config.json: neither resourceList (SR-IOV plugin) nor configList (shared RDMA plugin)"
    )


def _each(key: str, listed: list[Any], make: Any) -> tuple[list[NicResource], list[str]]:
    found: list[NicResource] = []
    problems = []
    for number, one in enumerate(listed):
        place = f"{key}[{number}]"
        try:
            resource = make(one, place)
        except (ValueError, TypeError) as error:
            problems.append(str(error))
            continue
        if any(resource.name == other.name for other in found):
            problems.append(
                f"{place}: resourceName {resource.name} is there twice; the first counts"
            )
        else:
            found.append(resource)
    return found, problems


def _name(one: Any, place: str, prefix: str) -> str:
    if not isinstance(one, dict):
        raise ValueError(f"{place}: no object")
    name = one.get("resourceName")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][\w.-]{0,62}", name):
        raise ValueError(f"{place}: resourceName {name!r} is no name such as mlnx_rdma")
    stated = one.get("resourcePrefix") or prefix
    if not isinstance(stated, str):
        raise ValueError(f"{place}: resourcePrefix {stated!r} is no domain")
    return f"{stated}/{name}"


def _sriov(one: Any, place: str) -> NicResource:
    name = _name(one, place, SRIOV_PREFIX)
    stated = one.get("selectors", {})
    several = stated if isinstance(stated, list) else [stated]
    selectors = []
    for tree in several:
        words = _words(tree, place)
        selectors.append(
            Selector(
                vendors=words("vendors"),
                devices=words("devices"),
                drivers=words("drivers"),
                pf_names=tuple(_checked(w, place) for w in words("pfNames")),
                addresses=words("pciAddresses"),
                links=words("linkTypes"),
                rdma=tree.get("isRdma") is True,
            )
        )
    return NicResource(
        name,
        selectors,
        topology=one.get("excludeTopology") is not True,
        rdma=any(selector.rdma for selector in selectors),
        vhost=any(tree.get("needVhostNet") is True for tree in several),
    )


def _shared(one: Any, place: str) -> NicResource:
    name = _name(one, place, SHARED_PREFIX)
    most = one.get("rdmaHcaMax")
    if not isinstance(most, int) or isinstance(most, bool) or not 0 < most <= MOST_SHARED:
        raise ValueError(f"{place}: rdmaHcaMax {most!r} is no number from 1 to {MOST_SHARED}")
    tree = one.get("selectors") or {"ifNames": one.get("devices", [])}
    words = _words(tree, place)
    selector = Selector(
        vendors=words("vendors"),
        devices=words("deviceIDs"),
        drivers=words("drivers"),
        netdevs=words("ifNames"),
        links=words("linkTypes"),
        rdma=True,
    )
    return NicResource(name, (selector,), most, topology=False, shared=True, rdma=True)


def _words(tree: Any, place: str) -> Any:
    if not isinstance(tree, dict):
        raise ValueError(f"{place}: selectors is no object")

    def words(key: str) -> tuple[str, ...]:
        listed = tree.get(key) or []
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise ValueError(f"{place}: selectors.{key} {listed!r} is no list of words")
        return tuple(listed)

    return words


def _checked(words: str, place: str) -> str:
    found = _PF.fullmatch(words)
    if found is None or (found[2] and list(_numbers(found[2])) == []):
        raise ValueError(f"{place}: pfNames {words!r} is not like ens1f0 or ens1f0#0-3,7")
    return words


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (high.isdecimal() or not high):
            yield from range(int(low), min(int(high or low), 4096) + 1)


def _of_pf(words: str, one: Candidate) -> bool:
    found = _PF.fullmatch(words)
    if found is None or found[1] != (one.pf or one.netdev):
        return False
    return not found[2] or (one.vf is not None and one.vf in set(_numbers(found[2])))


def made(resources: Sequence[NicResource], nics: Sequence[Candidate]) -> Made:
    """Return which NICs each resource has on a node; each NIC is in the first that selects it."""
    found = Made()
    taken: set[str] = set()
    for resource in resources:
        chosen = [
            one.name
            for one in nics
            if one.name not in taken and any(s.selects(one) for s in resource.selectors)
        ]
        if not resource.shared:
            taken.update(chosen)
        found.resources[resource.name] = chosen
        handles = resource.times if chosen else 0
        found.amounts[resource.name] = handles if resource.shared else len(chosen)
        stated = {pf.partition("#")[0] for s in resource.selectors for pf in s.pf_names}
        known = {one.pf or one.netdev for one in nics}
        for pf in sorted(stated - known):
            found.problems.append(f"{resource.name}: there is no PF {pf} on this node")
    return found


def preferred(
    available: Sequence[str],
    must: Sequence[str],
    size: int,
    places: Mapping[str, Sequence[str]],
    cards: Sequence[Sequence[str]],
) -> list[str]:
    """Return *size* NICs: those that must be among them, then those nearest to the GPUs.

    *places* and *cards* say where NICs and the GPUs of the same container hang: NUMA node, root
    complex and bridges, the widest first. Each GPU gets a NIC before one gets a second.
    """
    chosen = [one for one in must if one in available][:size]
    left = [one for one in available if one not in chosen]
    wanting = [tuple(card) for card in cards] or [()]
    while left and len(chosen) < size:
        card = wanting[len(chosen) % len(wanting)]
        best = max(left, key=lambda one: (_common(places.get(one, ()), card), -left.index(one)))
        chosen.append(best)
        left.remove(best)
    return chosen


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
