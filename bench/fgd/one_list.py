"""A run from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.fgd.arrivals import inflated
from bench.fgd.catalog import POLICIES, Setting
from bench.fgd.fill import Cluster, Outcome, Progress, fill
from bench.fgd.lists import BadList, ListedPod, read_arrivals, read_nodes, read_pods

INFLATION = 1.3
"""Demand over the cluster's GPUs that the protocol goes to."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run: arrivals are drawn from *seed*, or come in the order of the file *arrivals*.

    Raises:
        ValueError: when it is not said which of the two, or when *inflate* comes with a file.
    """

    nodes: Path
    pods: Path
    policy: str
    seed: int | None = None
    inflate: float | None = None
    arrivals: Path | None = None

    def __post_init__(self) -> None:
        if self.arrivals is None and self.seed is None:
            raise ValueError("say --seed N to draw the arrivals, or --arrivals FILE to give them")
        if self.arrivals is not None and self.inflate is not None:
            raise ValueError("--inflate draws arrivals, --arrivals gives them; leave one out")


def run(wanted: Wanted, progress: Progress | None = None) -> Outcome:
    """Read the files, let the pods arrive and return what came of it.

    Raises:
        BadList: when a file cannot be used.
    """
    nodes, pods = read_nodes(wanted.nodes), read_pods(wanted.pods)
    # With a file of arrivals the seed is only for the order in which equal nodes are preferred.
    random = Random(wanted.seed or 0)
    cluster = Cluster(nodes, random)
    if not cluster.free.capacity:
        raise BadList(f"{wanted.nodes}: no node has a GPU; give at least one line a gpu above 0")
    arrivals: Sequence[tuple[str, ListedPod]]
    if wanted.arrivals is not None:
        arrivals = read_arrivals(wanted.arrivals, pods)
    else:
        drawn = inflated(pods, cluster.free.capacity, wanted.inflate or INFLATION, random)
        arrivals = [(str(i), pod) for i, pod in enumerate(drawn)]
    # A policy knows the nodes and the distribution of what usually comes, not what comes next.
    setting = Setting(cluster.free, [pod.request for pod in pods], random)
    return fill(cluster, arrivals, POLICIES[wanted.policy](setting), progress)
