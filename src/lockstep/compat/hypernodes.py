"""Volcano's HyperNodes as tiers: each node gets a label for every tier that holds it.

A HyperNode has a tier (1 is the narrowest) and members: nodes, by exact name, regular expression
or labels, or other HyperNodes, by exact name or regular expression. Behind the door they are
labels of nodes and the tiers of a Topology like any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, structs

from lockstep.api.core import Node
from lockstep.api.meta import LabelSelector, ObjectMeta
from lockstep.api.names import HOSTNAME_LABEL
from lockstep.api.resource import Resource
from lockstep.api.selectors import SelectorError, from_selector
from lockstep.api.topology import Tier, Topology, TopologySpec
from lockstep.api.wire import Wire

GROUP: Final = "topology.volcano.sh"
VERSION: Final = "v1alpha1"
LABEL_PREFIX: Final = "hypernode.lockstep.dev/tier-"
TOPOLOGY_NAME: Final = "hypernodes"
"""Under this name the tiers are handed in; a Topology called ``default`` goes before them."""
NODE_TIER: Final = Tier(name="node", label=HOSTNAME_LABEL)


class Exact(Wire, frozen=True):
    """One member by its name."""

    name: str = ""


class Regex(Wire, frozen=True):
    """Members by a regular expression, which may match any part of the name."""

    pattern: str = ""


class MemberSelector(Wire, frozen=True):
    """Which members: one of the three ways."""

    exact_match: Exact | None = None
    regex_match: Regex | None = None
    label_match: LabelSelector | None = None


class Member(Wire, frozen=True):
    """Members of one type."""

    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Wire, frozen=True):
    """A domain of the network."""

    tier: Annotated[int, Meta(ge=0)] = 0
    tier_name: str = ""
    members: list[Member] = []


class HyperNode(Wire, frozen=True):
    """A domain of the network, as Volcano states it."""

    metadata: ObjectMeta
    spec: HyperNodeSpec = HyperNodeSpec()
    api_version: str = f"{GROUP}/{VERSION}"
    kind: str = "HyperNode"


HYPERNODES = Resource(GROUP, VERSION, "hypernodes", "HyperNode", False, HyperNode)


class HyperNodes:
    """All HyperNodes, and which nodes they hold. Change it through its methods."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        """By HyperNode why some of its members cannot be told."""
        self._known: dict[str, HyperNode] = {}
        self._nodes: dict[str, Mapping[str, str]] = {}
        self._holding: dict[str, set[str]] = {}
        """By node the HyperNodes of which it is a member itself."""
        self._above: dict[str, list[str]] | None = None

    def __len__(self) -> int:
        return len(self._known)

    def set(self, hypernode: HyperNode) -> None:
        """Take in a HyperNode, new or changed."""
        name = hypernode.metadata.name
        self.remove(name)
        self._known[name] = hypernode
        tests = list(self._tests(hypernode, "Node"))
        for node, labels in self._nodes.items():
            if any(test(node, labels) for test in tests):
                self._holding[node].add(name)

    def remove(self, name: str) -> None:
        """Forget a HyperNode."""
        self._above = None
        self.problems.pop(name, None)
        if self._known.pop(name, None) is not None:
            for holding in self._holding.values():
                holding.discard(name)

    def labelled(self, node: Node) -> Node:
        """Take in a node; return it with a label for each tier that holds it."""
        name, labels = node.metadata.name, node.metadata.labels
        if self._nodes.get(name) != labels:
            self._nodes[name] = labels
            self._holding[name] = {
                one.metadata.name
                for one in self._known.values()
                if any(test(name, labels) for test in self._tests(one, "Node"))
            }
        domains = self._domains(name)
        if not domains:
            return node
        meta = structs.replace(node.metadata, labels={**labels, **domains})
        return structs.replace(node, metadata=meta)

    def forget(self, node: str) -> None:
        """Forget a node."""
        self._nodes.pop(node, None)
        self._holding.pop(node, None)

    def topology(self) -> Topology | None:
        """Return the tiers, widest first and the node last; None without any HyperNode."""
        if not self._known:
            return None
        named: dict[int, set[str]] = {}
        for one in self._known.values():
            named.setdefault(one.spec.tier, set()).add(one.spec.tier_name)
        chosen = {tier: next(iter(names)) for tier, names in named.items() if len(names) == 1}
        often = Counter(chosen.values())
        tiers = []
        for tier in sorted(named, reverse=True):
            stated = chosen.get(tier, "")
            unique = stated and often[stated] == 1 and stated != NODE_TIER.name
            name = stated if unique else f"tier-{tier}"
            tiers.append(Tier(name=name, label=f"{LABEL_PREFIX}{tier}"))
        return Topology(
            metadata=ObjectMeta(name=TOPOLOGY_NAME), spec=TopologySpec(tiers=[*tiers, NODE_TIER])
        )

    def _domains(self, node: str) -> dict[str, str]:
        """Return the labels of a node; of two HyperNodes of one tier the first by name counts."""
        found: dict[str, str] = {}
        seen: set[str] = set()
        climbing = sorted(self._holding[node])
        while climbing:
            name = climbing.pop(0)
            if name in seen:
                continue
            seen.add(name)
            label = f"{LABEL_PREFIX}{self._known[name].spec.tier}"
            if found.setdefault(label, name) == name:
                climbing += self._parents().get(name, [])
        return found

    def _parents(self) -> dict[str, list[str]]:
        if self._above is None:
            self._above = {}
            for parent in sorted(self._known):
                tests = list(self._tests(self._known[parent], "HyperNode"))
                for child in self._known if tests else ():
                    if child != parent and any(test(child, {}) for test in tests):
                        self._above.setdefault(child, []).append(parent)
        return self._above

    def _tests(self, hypernode: HyperNode, kind: str) -> Iterator[_Test]:
        """Yield a test of a name and labels for each way in which members are stated."""
        for member in hypernode.spec.members:
            if member.type != kind:
                continue
            try:
                yield _Test(member.selector, labels=kind == "Node")
            except (re.error, SelectorError) as error:
                self.problems[hypernode.metadata.name] = str(error)


class _Test:
    """Whether a name and labels are those of a member."""

    def __init__(self, selector: MemberSelector, *, labels: bool) -> None:
        self._name = selector.exact_match.name if selector.exact_match else None
        pattern = selector.regex_match.pattern if selector.regex_match else ""
        self._pattern = re.compile(pattern) if pattern else None
        match = selector.label_match if labels else None
        self._match = from_selector(match) if match is not None else None

    def __call__(self, name: str, labels: Mapping[str, str]) -> bool:
        if self._name is not None:
            return name == self._name
        if self._pattern is not None:
            return self._pattern.search(name) is not None
        return self._match is not None and self._match.matches(dict(labels))
