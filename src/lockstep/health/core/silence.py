"""Which nodes have stopped renewing their leases: a function of what is seen and when.

Kubernetes calls a node unreachable 50 s after its last sign of life. A gang waits for that node
alone, so Lockstep counts itself, on its own clock, and stops nothing that still runs: a lost
node gets a taint, and nothing new comes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.core import Lease, Node
from lockstep.api.names import UNREACHABLE_TAINT
from lockstep.health.core.lifecycle import readiness

SILENT_AFTER: Final = 25.0
"""Seconds without a renewal after which a node is lost; kubelet renews every ten."""
BREAK: Final = 6.0
"""Seconds without an answer of the API server after which every node has its time again."""
_USUAL_LEASE: Final = 40
"""Seconds that kubelet's lease lasts; one that lasts longer is renewed less often."""


@dataclass(frozen=True, slots=True)
class _Heard:
    renewed: str
    at: float
    limit: float
    again: bool
    """Whether a renewal was seen, and not just the lease as it was before."""


@dataclass
class Renewals:
    """When each node renewed its lease last, by the clock of this process.

    Silence counts only while the API server answers this process: after an outage, and at the
    beginning, every node has its time again.
    """

    _nodes: dict[str, _Heard] = field(default_factory=dict)
    _answered: float | None = None

    def hear(self, lease: Lease, now: float) -> None:
        """Take note of a node's *lease* as it is at the time *now*."""
        name, renewed = lease.metadata.name, lease.spec.renew_time or ""
        known = self._nodes.get(name)
        if known is None or known.renewed != renewed:
            longer = max(1.0, lease.spec.lease_duration_seconds / _USUAL_LEASE)
            limit = SILENT_AFTER * longer
            self._nodes[name] = _Heard(renewed, now, limit, again=known is not None)

    def forget(self, name: str) -> None:
        """Drop a node whose lease is gone."""
        self._nodes.pop(name, None)

    def answered(self, now: float) -> None:
        """Take note that the API server has answered; after a break nothing counts any more."""
        if self._answered is None or now - self._answered > BREAK:
            self._nodes = {
                name: _Heard(known.renewed, now, known.limit, again=False)
                for name, known in self._nodes.items()
            }
        self._answered = now

    def quietest(self) -> str:
        """Return the node that was heard of longest ago; empty where there is none."""
        return min(self._nodes, key=lambda name: self._nodes[name].at, default="")

    def silent(self, now: float) -> frozenset[str]:
        """Return the nodes that have been silent for too long."""
        return frozenset(
            name for name, known in self._nodes.items() if now - known.at >= known.limit
        )

    def renewed(self, now: float) -> frozenset[str]:
        """Return the nodes that were seen to renew their leases in time."""
        late = self.silent(now)
        return frozenset(n for n, known in self._nodes.items() if known.again and n not in late)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Nodes to taint, nodes whose taint goes, and why silent nodes are let be, if they are."""

    lost: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    held: str = ""


def judge(nodes: Iterable[Node], silent: Set[str], renewed: Set[str]) -> Verdict:
    """Return which nodes are lost and which are back.

    Nodes that Kubernetes itself calls not Ready need no taint of ours. Where most of the others
    fall silent together the fault may be that of the control plane, and none is lost.
    """
    there = list(nodes)
    tainted = {n.metadata.name for n in there if is_tainted(n)}
    ready = {n.metadata.name for n in there if readiness(n) == "True"}
    quiet = ready & silent
    back = tuple(sorted(tainted & renewed))
    if 2 * len(quiet) > len(ready):
        some = ", ".join(sorted(quiet)[:4]) + (", ..." if len(quiet) > 4 else "")
        words = (
            f"{len(quiet)} of {len(ready)} nodes stopped renewing their leases: {some}. "
            "Lockstep takes none of them for lost, as the control plane may be at fault."
        )
        return Verdict(back=back, held=words)
    return Verdict(tuple(sorted(quiet - tainted)), back)


def is_tainted(node: Node) -> bool:
    """Say whether *node* bears the taint of a lost node."""
    return any(one.key == UNREACHABLE_TAINT for one in node.spec.taints)
