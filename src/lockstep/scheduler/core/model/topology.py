"""The network's tiers over the rows of the node table.

A domain is known by its path from the widest tier down, so two leaves of the same name under
different spines are two domains, and every narrower domain lies in exactly one wider one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lockstep.api.names import HOSTNAME_LABEL
from lockstep.api.topology import DEFAULT_TOPOLOGY, Tier, Topology

IN_USE = ("default", "hypernodes")
"""Names of topologies, of which the first that there is counts."""
Path = tuple[str, ...]
NO_DOMAIN = -1


class TierIndex:
    """One tier: for every row the number of its domain, -1 where the node has no such label."""

    def __init__(self, tier: Tier, capacity: int) -> None:
        self.tier = tier
        self.name = tier.name
        self.label = tier.label
        self.ids: NDArray[np.int32] = np.full(capacity, NO_DOMAIN, dtype=np.int32)
        self.paths: list[Path] = []
        self._known: dict[Path, int] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def set(self, row: int, path: Path | None) -> None:
        """Note the domain of one row."""
        if path is None:
            self.ids[row] = NO_DOMAIN
            return
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = len(self.paths)
            self.paths.append(path)
        self.ids[row] = found

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        more = np.full(capacity - len(self.ids), NO_DOMAIN, dtype=np.int32)
        self.ids = np.concatenate([self.ids, more])

    def title(self, domain: int) -> str:
        """Return a domain's name with what it lies in: ``leaf-3 (spine-1)``."""
        *above, name = self.paths[domain]
        inside = "/".join(part for part in above if part)
        return f"{name} ({inside})" if inside else name


class Tiers:
    """All tiers, widest first."""

    def __init__(self, tiers: Sequence[Tier] | None = None, capacity: int = 0) -> None:
        chosen = DEFAULT_TOPOLOGY.spec.tiers if tiers is None else tiers
        self.indices = [TierIndex(tier, capacity) for tier in chosen]

    @property
    def names(self) -> list[str]:
        """Return the tiers' names, widest first."""
        return [tier.name for tier in self.indices]

    def level(self, name: str) -> int | None:
        """Return the number of the tier called *name*, 0 for the widest; None where unknown."""
        names = self.names
        return names.index(name) if name in names else None

    @property
    def nvlink(self) -> int | None:
        """Return the number of the widest tier whose domains NVLink joins; None without any."""
        found = (level for level, index in enumerate(self.indices) if index.tier.nvlink)
        return next(found, None)

    def place(self, row: int, node: str, labels: Mapping[str, str]) -> None:
        """Note the domains of a node, from its labels."""
        path: Path = ()
        for tier in self.indices:
            value = labels.get(tier.label)
            if value is None and tier.label == HOSTNAME_LABEL:
                value = node
            path = (*path, value or "")
            tier.set(row, path if value is not None else None)

    def clear(self, row: int) -> None:
        """Take a row out of every domain."""
        for tier in self.indices:
            tier.set(row, None)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        for tier in self.indices:
            tier.grow(capacity)


class Topologies:
    """The topologies that there are, and the tiers of the one that counts."""

    def __init__(self) -> None:
        self.tiers: list[Tier] | None = None
        """None where there is no topology: the built-in tiers are used."""
        self._known: dict[str, Topology] = {}

    def set(self, topology: Topology) -> bool:
        """Take in a topology; return whether other tiers count from now on."""
        self._known[topology.metadata.name] = topology
        return self._choose()

    def remove(self, name: str) -> bool:
        """Forget a topology; return whether other tiers count from now on."""
        return self._known.pop(name, None) is not None and self._choose()

    def _choose(self) -> bool:
        found = (self._known.get(name) for name in IN_USE)
        chosen = next((topology.spec.tiers for topology in found if topology is not None), None)
        changed, self.tiers = chosen != self.tiers, chosen
        return changed
