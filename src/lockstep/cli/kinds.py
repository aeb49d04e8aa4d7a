"""How people name kinds and objects: ``digits``, ``gang/g1``, ``queues``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.core import CONFIG_MAPS, EVENTS, NODES, PODS, PRIORITY_CLASSES, SERVICES
from lockstep.api.gang import GANGS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.node_policy import NODE_POLICIES
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS

ALIASES: dict[str, tuple[Resource[Any], tuple[str, ...]]] = {
    "job": (TRAINING_JOBS, ("jobs", "trainingjob", "trainingjobs", "tj", "tjob")),
    "gang": (GANGS, ("gangs",)),
    "queue": (QUEUES, ("queues", "q")),
    "nodepolicy": (NODE_POLICIES, ("nodepolicies", "np")),
    "nodepool": (NODE_POOLS, ("nodepools",)),
    "topology": (TOPOLOGIES, ("topologies",)),
    "node": (NODES, ("nodes", "no")),
    "pod": (PODS, ("pods", "po")),
    "event": (EVENTS, ("events", "ev")),
    "service": (SERVICES, ("services", "svc")),
    "configmap": (CONFIG_MAPS, ("configmaps", "cm")),
    "team": (TEAMS, ("teams",)),
    "pipeline": (PIPELINE_RUNS, ("pipelines", "pipelinerun", "pipelineruns", "pr")),
    "pipelinetrigger": (PIPELINE_TRIGGERS, ("pipelinetriggers",)),
    "modelversion": (MODEL_VERSIONS, ("modelversions", "mv")),
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
    bare: bool = field(default=False, compare=False)
    """Whether the user gave the name alone, without a kind."""

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


def wanted(words: Sequence[str]) -> tuple[str, Resource[Any]] | list[Reference]:
    """Return what *words* name: a whole kind (``pods``), or objects.

    ``pod a b`` are two pods, as kubectl reads it; ``a pod/b`` a job and a pod.

    Raises:
        ValueError: when they are neither.
    """
    first = words[0].lower() if words else "jobs"
    if first not in _BY_NAME:
        return [reference(word) for word in words]
    short, res = _BY_NAME[first]
    if len(words) < 2:
        return short, res
    return [reference(word if "/" in word else f"{short}/{word}") for word in words[1:]]


def several(words: Sequence[str]) -> list[Reference]:
    """Return the objects that *words* name: ``a``, ``pod/b``, or ``pod b c``.

    Raises:
        ValueError: when they name a whole kind, or nothing.
    """
    found = wanted(words)
    if isinstance(found, tuple):
        raise ValueError(f"{words[0]} is a kind; name objects: {found[0]} NAME, or {found[0]}/NAME")
    return found


def single(words: Sequence[str]) -> Reference:
    """Return the one object that *words* name: ``a``, ``pod/b`` or ``pod b``.

    Raises:
        ValueError: when they name another number of them.
    """
    found = several(words)
    if len(found) != 1:
        raise ValueError(f"name one object, not {len(found)}")
    return found[0]


def reference(text: str) -> Reference:
    """Return the object that *text* names: ``NAME`` is a job, ``KIND/NAME`` anything.

    Raises:
        ValueError: when it is neither.
    """
    kind, slash, name = text.rpartition("/")
    if not name or (slash and not kind) or "/" in kind:
        raise ValueError(f"{text!r} names nothing; write NAME for a job, or KIND/NAME")
    short, res = resource(kind or "job")
    return Reference(short, name, res, bare=not slash)
