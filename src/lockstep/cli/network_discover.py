"""Reads a network's tree from what tools tell, and makes it the cluster's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from lockstep.api.core import NODES
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import TIER_LABEL
from lockstep.api.topology import TOPOLOGIES, Tier, Topology, TopologySpec
from lockstep.api.wire import convert, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput
from lockstep.cli.output import note
from lockstep.compat import fabrics
from lockstep.compat.hypernodes import HYPERNODES, HyperNode, HyperNodes
from lockstep.devices.core.stated import label
from lockstep.devices.network.core import sources
from lockstep.devices.network.core.fabric import Fabric, Fault, Found, resolve
from lockstep.devices.network.core.infiniband import ibnetdiscover
from lockstep.kube.errors import ApiError, NotFound

EVERY: Final = 10.0
"""Seconds between two looks at the files of ``--watch``."""
LONGEST: Final = 256 << 20
NVLINK_BANDWIDTH: Final = 450.0


def read(option: str, path: Path) -> Found:
    """Return the tree that a file, or a folder of files, tells of.

    Raises:
        BadInput: when it cannot be read, naming option, file and what is missing.
    """
    try:
        if option == "lldp" and path.is_dir():
            return resolve(sources.lldp(_together(path)))
        with path.open(errors="replace") as file:
            text = file.read(LONGEST)
        if option in GRAPHS:
            fabric = GRAPHS[option](text, path.stem)
            return resolve(fabric)
        tiers, nodes = TREES[option](text)
    except OSError as error:
        raise BadInput(f"--{option}: {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"--{option}: {path}: {error}") from None
    return Found(tiers=tiers, nodes=nodes, faults=list(_holes(tiers, nodes)))


def _together(folder: Path) -> str:
    """Return the answers in a folder as one object: each file is called by its device."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            found[file.stem] = json.loads(file.read_text(errors="replace"))
        except ValueError as error:
            raise sources.Unreadable(f"{file.name}: no JSON: {error}") from None
    if not found:
        raise sources.Unreadable("no files such as NODE.json in it")
    return json.dumps(found)


def _hypernodes(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the tree of HyperNodes, as YAML or JSON of one object, several, or a List."""
    import yaml

    objects = [one for one in yaml.safe_load_all(text) if isinstance(one, dict)]
    items = [item for one in objects for item in one.get("items", [one])]
    known = HyperNodes()
    exact: dict[str, str] = {}
    for item in items:
        hypernode = convert(item, HyperNode)
        known.set(hypernode)
        for member in hypernode.spec.members:
            if member.type == "Node" and member.selector.exact_match is not None:
                exact[member.selector.exact_match.name] = hypernode.metadata.name
    if not items:
        raise ValueError("no HyperNode in it")
    return _tree_of(known, {name: {} for name in exact})


def _tree_of(
    known: HyperNodes, nodes: Mapping[str, Mapping[str, str]]
) -> tuple[list[str], dict[str, list[str]]]:
    from lockstep.api.core import Node

    topology = known.topology()
    if topology is None:
        return [], {}
    tiers = list(reversed(topology.spec.tiers[:-1]))
    found = {}
    for name, labels in nodes.items():
        node = known.labelled(Node(metadata=ObjectMeta(name=name, labels=dict(labels))))
        path = [node.metadata.labels.get(tier.label, "") for tier in tiers]
        if any(path):
            found[name] = path
    return [tier.name for tier in tiers], found


GRAPHS: Final[Mapping[str, Callable[[str, str], Fabric]]] = {
    "ibnetdiscover": lambda text, _: ibnetdiscover(text),
    "lldp": sources.lldp,
    "netq": lambda text, _: sources.netq(text),
}
TREES: Final[Mapping[str, Callable[[str], tuple[list[str], dict[str, list[str]]]]]] = {
    "topograph": fabrics.topograph,
    "slurm": fabrics.slurm,
    "hypernodes": _hypernodes,
}


def _holes(tiers: Sequence[str], nodes: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Yield nodes without a domain in a tier where most others have one."""
    for number, tier in enumerate(tiers):
        without = [node for node, path in nodes.items() if not path[number]]
        if 0 < len(without) * 2 < len(nodes):
            for node in sorted(without):
                yield Fault(kind="island", place=node, evidence=f"it has no {tier}")


def merged(found: Mapping[str, Found]) -> Found:
    """Return the first source's tree, with what others say of other nodes and where they differ."""
    first, *others = found.values()
    trees = [(name, one.tiers, one.nodes) for name, one in found.items()]
    faults = [fault for one in found.values() for fault in one.faults]
    faults += [
        Fault(kind="disagreement", place=node, evidence=told)
        for node, told in fabrics.disagreements(trees)
    ]
    nodes = dict(first.nodes)
    for one in others:
        if one.tiers == first.tiers:
            nodes = {**one.nodes, **nodes}
    return Found(tiers=first.tiers, nodes=nodes, faults=faults)


async def from_cluster(session: Session) -> dict[str, Found]:
    """Return the trees that the cluster's node labels and HyperNodes state, by source."""
    nodes = {
        one.metadata.name: dict(one.metadata.labels)
        for one in (await session.client.list(NODES)).items
    }
    found = {}
    tiers, domains = fabrics.from_labels(nodes)
    if domains:
        found["labels"] = Found(tiers=tiers, nodes=domains, faults=list(_holes(tiers, domains)))
    try:
        listed = (await session.client.list(HYPERNODES)).items
    except NotFound:
        listed = []
    known = HyperNodes()
    for one in listed:
        known.set(one)
    tiers, domains = _tree_of(known, nodes)
    if domains:
        found["hypernodes"] = Found(tiers=tiers, nodes=domains)
    return found


async def apply(session: Session, found: Found) -> None:
    """Make the tree the cluster's: labels of its nodes, and the tiers of the Topology."""
    tiers = [
        Tier(
            name=name,
            label=f"{TIER_LABEL}{name}",
            nvlink=name == fabrics.NVLINK,
            bandwidth=NVLINK_BANDWIDTH if name == fabrics.NVLINK else None,
        )
        for name in reversed(found.tiers)
    ]
    node = Tier(name="node", label="kubernetes.io/hostname")
    before = await session.find(TOPOLOGIES, "default")
    if before is not None:
        known = {tier.name: tier for tier in before.spec.tiers}
        tiers = [
            replace(tier, bandwidth=known[tier.name].bandwidth) if tier.name in known else tier
            for tier in tiers
        ]
    rails = before.spec.rails if before is not None else []
    # Labels first: a tier whose labels are not there yet would hold no node.
    there = {
        one.metadata.name: one.metadata.labels for one in (await session.client.list(NODES)).items
    }
    for name in sorted(found.nodes.keys() - there.keys()):
        note(f"the cluster has no node {name}; it gets no labels")
    for name, labels in labels_of(found, there).items():
        if any(there[name].get(key) != value for key, value in labels.items()):
            await session.client.patch(NODES, name, {"metadata": {"labels": labels}})
    spec = to_builtins(TopologySpec(tiers=[*tiers, node], rails=rails))
    if before is None:
        body = Topology(metadata=ObjectMeta(name="default"), spec=convert(spec, TopologySpec))
        await session.client.create(TOPOLOGIES, body)
    else:
        await session.client.patch(TOPOLOGIES, "default", {"spec": spec})


def labels_of(
    found: Found, there: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str | None]]:
    """Return the labels that each of the cluster's nodes should have; none for one to be removed.

    A node that the tree does not have keeps its labels while their switches are in the tree.
    """
    keys = [f"{TIER_LABEL}{tier}" for tier in found.tiers]
    known = [{label(path[at]) for path in found.nodes.values()} for at in range(len(keys))]
    wanted: dict[str, dict[str, str | None]] = {}
    for name, labels in sorted(there.items()):
        if name in found.nodes:
            wanted[name] = {
                key: label(domain) or None
                for key, domain in zip(keys, found.nodes[name], strict=True)
            }
        else:
            wanted[name] = {
                key: None
                for key, domains in zip(keys, known, strict=True)
                if key in labels and labels[key] not in domains
            }
    return wanted


async def follow(session: Session, look: Callable[[], Found]) -> None:
    """Make the tree the cluster's whenever *look* tells another one, until cancelled."""
    before: Found | None = None
    while True:
        try:
            found = look()
            if found != before:
                await apply(session, found)
                before = found
                note(f"{len(found.nodes)} nodes, {len(found.faults)} faults: applied")
        except (BadInput, ApiError) as error:
            note(f"{error}; the cluster's tree stays as it is")
        await asyncio.sleep(EVERY)


def shown(found: Found) -> dict[str, Any]:
    """Return what ``-o json`` shows."""
    return {
        "tiers": list(found.tiers),
        "nodes": {node: list(path) for node, path in sorted(found.nodes.items(), key=_by_name)},
        "faults": [
            {"kind": one.kind, "place": one.place, "evidence": one.evidence} for one in found.faults
        ],
    }


def _by_name(item: tuple[str, Any]) -> list[tuple[int, int | str]]:
    parts = re.split(r"(\d+)", item[0])
    return [(0, int(p)) if p.isdecimal() else (1, p) for p in parts if p]
