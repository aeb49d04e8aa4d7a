"""The protocol of "Beware of Fragmentation": lists of pods fill a cluster, by several policies.

``run`` measures the figures of the benchmark; ``command`` runs one list of one's own.
"""

from __future__ import annotations

from bench.figure import Figure

SLOW = True


def run() -> list[Figure]:
    """Return what the policies reach beside the published figures."""
    from bench.fgd.figures import measured

    return measured()
