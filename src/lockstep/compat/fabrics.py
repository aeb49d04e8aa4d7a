"""Other systems' statements of a network's tree: topograph's, Slurm's and Volcano's, in and out.

All come down to the same: the tiers, the nearest first, and for each node its domain in each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.hypernodes import GROUP, VERSION

Domains = dict[str, list[str]]

TOPOGRAPH_TIER: Final = re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})")
TOPOGRAPH_DOMAIN: Final = "accelerator.topograph.run/domain"
OLDER_TIERS: Final = (
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
)
OLDER_DOMAIN: Final = "network.topology.nvidia.com/accelerator"
NVLINK: Final = "nvlink"
MOST_NODES: Final = 1 << 17
DEEPEST: Final = 32


def from_labels(nodes: Mapping[str, Mapping[str, str]]) -> tuple[list[str], Domains]:
    """Return the tree that topograph's labels of nodes state, the newer ones before the older."""
    newer: dict[str, dict[int, str]] = {}
    for node, labels in nodes.items():
        for label, value in labels.items():
            if (found := TOPOGRAPH_TIER.fullmatch(label)) is not None:
                newer.setdefault(node, {})[int(found[1])] = value
    domains: Domains = {}
    if newer:
        depth = max(tier for tiers in newer.values() for tier in tiers) + 1
        names = [f"tier-{n}" for n in range(depth)]
        domains = {node: [has.get(n, "") for n in range(depth)] for node, has in newer.items()}
    else:
        names = ["leaf", "spine", "core"]
        for node, labels in nodes.items():
            if any(label in labels for label in OLDER_TIERS):
                domains[node] = [labels.get(label, "") for label in OLDER_TIERS]
    fast = {
        node: labels.get(TOPOGRAPH_DOMAIN) or labels.get(OLDER_DOMAIN, "")
        for node, labels in nodes.items()
    }
    if any(fast.values()):
        names = [NVLINK, *names]
        domains = {
            node: [fast[node], *domains.get(node, [""] * (len(names) - 1))]
            for node in nodes
            if fast[node] or node in domains
        }
    return _trimmed(names, domains)


def topograph(text: str) -> tuple[list[str], Domains]:
    """Return the tree of topograph's graph as JSON: vertices in vertices, nodes innermost.

    Raises:
        ValueError: when it is none, naming what is missing.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ValueError("no object; give it topograph's graph")
    graph = _lower(tree)
    top = _lower(graph.get("tiers", graph))
    if not isinstance(top.get("vertices"), dict):
        raise ValueError("no 'vertices'; give it topograph's graph, with 'tiers' and 'domains'")
    paths: Domains = {}
    _climb(top, [], paths, 0)
    depth = max((len(path) for path in paths.values()), default=0)
    names = ["leaf", "spine", "core"][:depth] + [f"tier-{n + 1}" for n in range(3, depth)]
    domains = {node: path + [""] * (depth - len(path)) for node, path in paths.items()}
    fast = _accelerated(graph.get("domains"))
    if fast:
        names = [NVLINK, *names]
        domains = {node: [fast.get(node, ""), *path] for node, path in domains.items()}
    return names, domains


def _climb(vertex: Json, above: list[str], paths: Domains, depth: int) -> None:
    inner = vertex.get("vertices")
    if depth > DEEPEST:
        raise ValueError(f"'vertices' are nested more than {DEEPEST} deep")
    for key, one in (inner or {}).items() if isinstance(inner, dict) else ():
        below = _lower(one) if isinstance(one, dict) else {}
        name = str(below.get("name") or below.get("id") or key)
        if below.get("vertices"):
            _climb(below, [name, *above], paths, depth + 1)
        else:
            paths[name] = above


def _accelerated(tree: Any) -> dict[str, str]:
    """Return by node its NVLink domain: an object of domains that hold hosts."""
    found: dict[str, str] = {}
    for domain, hosts in tree.items() if isinstance(tree, dict) else ():
        held = hosts if isinstance(hosts, list | dict) else []
        values = hosts.values() if isinstance(hosts, dict) else ()
        for host in (*held, *(one for one in values if isinstance(one, str))):
            found[str(host)] = str(domain)
    return found


def _lower(tree: Any) -> Json:
    return {str(k).lower(): v for k, v in tree.items()} if isinstance(tree, dict) else {}


def slurm(text: str) -> tuple[list[str], Domains]:
    """Return the tree of Slurm's ``topology.conf``: switches, or blocks.

    Raises:
        ValueError: when a line says neither, naming its number.
    """
    parents: dict[str, str] = {}
    holds: dict[str, str] = {}
    blocks: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line or line.lower().startswith("blocksizes"):
            continue
        said = {k.lower(): v for k, _, v in (w.partition("=") for w in line.split())}
        name = said.get("switchname") or said.get("blockname")
        if not name:
            raise ValueError(f"line {number}: {line[:60]!r} names neither a switch nor a block")
        for child in expand(said.get("switches", "")):
            parents[child] = name
        for node in expand(said.get("nodes", "")):
            (blocks if "blockname" in said else holds)[node] = name
    if not holds and not blocks:
        raise ValueError("no line like 'SwitchName=s1 Nodes=n[1-8]'")
    domains: Domains = {}
    for node, at in holds.items():
        path: list[str] = []
        while at and at not in path:
            path.append(at)
            at = parents.get(at, "")  # noqa: PLW2901 - climbs
        domains[node] = path
    depth = max((len(path) for path in domains.values()), default=0)
    names = ["leaf", "spine", "core"][:depth] + [f"tier-{n + 1}" for n in range(3, depth)]
    padded = {node: path + [""] * (depth - len(path)) for node, path in domains.items()}
    if blocks:
        names = ["block", *names]
        every = sorted({*padded, *blocks})
        padded = {one: [blocks.get(one, ""), *padded.get(one, [""] * depth)] for one in every}
    return names, padded


def expand(text: str) -> list[str]:
    """Return the names of a Slurm host list such as ``n[1-3,7],login``.

    Raises:
        ValueError: when a range runs backwards or names too many.
    """
    found: list[str] = []
    for whole in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", whole):
            parts = [literal] if literal else list(_numbers(ranges))
            if len(names) * len(parts) > MOST_NODES:
                raise ValueError(f"{whole[:40]!r} names more than {MOST_NODES} nodes")
            names = [name + part for name in names for part in parts]
        found += names
    return found


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ValueError(f"[{text[:40]}] is no range of numbers, such as [1-8,12]")
        last = int(high) if dash else int(low)
        if last < int(low) or last - int(low) > MOST_NODES:
            raise ValueError(f"[{part}] runs backwards, or names more than {MOST_NODES}")
        yield from (str(n).zfill(len(low)) for n in range(int(low), last + 1))


def hypernodes(tiers: Sequence[str], nodes: Mapping[str, Sequence[str]]) -> list[Json]:
    """Return a tree as Volcano's HyperNodes: one for each domain, tier 1 the nearest."""
    members: dict[tuple[int, str], dict[str, str]] = {}
    for node, path in sorted(nodes.items()):
        below, kind = node, "Node"
        for tier, domain in enumerate(path, 1):
            if domain:
                name = _named(tiers[tier - 1], domain)
                members.setdefault((tier, name), {})[below] = kind
                below, kind = name, "HyperNode"
    return [
        {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {
                "tier": tier,
                "tierName": tiers[tier - 1],
                "members": [
                    {"type": kind, "selector": {"exactMatch": {"name": one}}}
                    for one, kind in held.items()
                ],
            },
        }
        for (tier, name), held in sorted(members.items())
    ]


def _named(tier: str, domain: str) -> str:
    """Return a domain as an object's name; that of the tier keeps equal names apart."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", f"{tier}-{domain}".lower()).strip("-.")
    return plain[:253].strip("-.")


def _trimmed(names: list[str], domains: Domains) -> tuple[list[str], Domains]:
    """Return a tree without the tiers in which no node has a domain."""
    used = [n for n in range(len(names)) if any(path[n] for path in domains.values())]
    return [names[n] for n in used], {k: [path[n] for n in used] for k, path in domains.items()}


def disagreements(
    trees: Iterable[tuple[str, Sequence[str], Mapping[str, Sequence[str]]]],
) -> list[tuple[str, str]]:
    """Return nodes of which two sources tell different neighbours, with what each says.

    Names of domains may differ between sources; what counts is with whom a node shares its nearest.
    """
    nearest: list[tuple[str, dict[str, frozenset[str]]]] = []
    for source, _, nodes in trees:
        groups: dict[str, set[str]] = {}
        for node, path in nodes.items():
            if path and path[0]:
                groups.setdefault(path[0], set()).add(node)
        nearest.append((source, {n: frozenset(g) for g in groups.values() for n in g}))
    found = []
    for number, (source, ours) in enumerate(nearest):
        for other, theirs in nearest[number + 1 :]:
            for node in sorted(set(ours) & set(theirs)):
                common = set(ours) & set(theirs)
                if ours[node] & common != theirs[node] & common:
                    told = (
                        f"{source}: with {_some(ours[node])}; {other}: with {_some(theirs[node])}"
                    )
                    found.append((node, told))
    return found


def _some(nodes: frozenset[str]) -> str:
    listed = sorted(nodes)
    return ", ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")
