"""How people name kinds and objects: ``digits``, ``gang/g1``, ``queues``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.api.core import CONFIG_MAPS, EVENTS, NODES, PODS, PRIORITY_CLASSES, SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS

ALIASES: dict[str, tuple[Resource[Any], tuple[str, ...]]] = {
    "job": (TRAINING_JOBS, ("jobs", "trainingjob", "trainingjobs", "tj", "tjob")),
    "gang": (GANGS, ("gangs",)),
    "queue": (QUEUES, ("queues", "q")),
    "nodepolicy": (NODE_POLICIES, ("nodepolicies", "np")),
    "topology": (TOPOLOGIES, ("topologies",)),
    "node": (NODES, ("nodes", "no")),
    "pod": (PODS, ("pods", "po")),
    "event": (EVENTS, ("events", "ev")),
    "service": (SERVICES, ("services", "svc")),
    "configmap": (CONFIG_MAPS, ("configmaps", "cm")),
    "priorityclass": (PRIORITY_CLASSES, ("priorityclasses", "pc")),
}
_BY_NAME = {
    spelling: (name, res) for name, (res, more) in ALIASES.items() for spelling in (name, *more)
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One object as the user named it."""

    kind: str
    name: str
    resource: Resource[Any]

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def short_name(res: Resource[Any]) -> str:
    """Return what the command line calls the kind of *res*."""
    known = {(its.group, its.kind): name for name, (its, _) in ALIASES.items()}
    return known.get((res.group, res.kind), res.kind.lower())


def plural(short: str) -> str:
    """Return what the command line calls several objects of the kind *short*."""
    return ALIASES[short][1][0]


def resource(kind: str) -> tuple[str, Resource[Any]]:
    """Return the short name and the resource of the kind that the user calls *kind*.

    Raises:
        ValueError: when there is none; the message lists what there is.
    """
    try:
        return _BY_NAME[kind.lower()]
    except KeyError:
        known = ", ".join(ALIASES)
        raise ValueError(f"{kind!r} is not a kind; use one of {known}") from None


def reference(text: str) -> Reference:
    """Return the object that *text* names: ``NAME`` is a job, ``KIND/NAME`` anything.

    Raises:
        ValueError: when it is neither.
    """
    kind, slash, name = text.rpartition("/")
    if not name or (slash and not kind) or "/" in kind:
        raise ValueError(f"{text!r} names nothing; write NAME for a job, or KIND/NAME")
    short, res = resource(kind or "job")
    return Reference(short, name, res)
