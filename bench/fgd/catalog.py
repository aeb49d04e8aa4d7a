"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from bench.fgd.foresight import ForesightPlaces
from bench.fgd.gradient import GradientDescent, typical_requests
from bench.fgd.nodes import ListedNodes
from bench.fgd.policies import BestFit, DotProduct, Policy, RandomPlaces, Rated
from bench.fgd.scheduler import SchedulerPlaces
from lockstep.scheduler.core.scoring.demand import Demand
from lockstep.scheduler.core.scoring.gpu_milli import Request


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy may know: the nodes, what usually comes, and a source of chance."""

    nodes: ListedNodes
    usual: Sequence[Request]
    random: Random


POLICIES: dict[str, Callable[[Setting], Policy]] = {
    "lockstep": lambda s: ForesightPlaces(s.nodes, Demand.of(s.usual)),
    "fgd": lambda s: Rated(s.nodes, GradientDescent(s.nodes, typical_requests(s.usual))),
    "best-fit": lambda s: Rated(s.nodes, BestFit()),
    "dot-product": lambda s: Rated(s.nodes, DotProduct()),
    "random": lambda s: RandomPlaces(s.nodes, s.random),
    "scheduler": lambda s: SchedulerPlaces(s.nodes, s.usual),
}
DEFAULT = "lockstep"


def policy_named(name: str) -> str:
    """Return the policy's name as the catalog writes it; hyphens and case do not matter.

    Raises:
        ValueError: when there is none of that name.
    """
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    for known in POLICIES:
        if known.replace("-", "") == plain:
            return known
    raise ValueError(f"no policy {name!r}; choose one of {', '.join(POLICIES)}")
