"""NetworkCheck: which nodes shall prove that their rails carry traffic, and what they measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.topology import Rail
from lockstep.api.wire import Wire

State = Literal["ok", "warn", "fail", "unknown"]


class Check(Wire, frozen=True):
    """One check's answer: what was seen, where, and what to do about it."""

    group: str
    state: State
    evidence: str = ""
    fix: str = ""
    place: str = ""


class Verdict(Wire, frozen=True):
    """What is at fault: ``healthy``, ``unknown``, or the kind of thing at *place*."""

    kind: str = "unknown"
    place: str = ""
    evidence: str = ""


class Endpoint(Wire, frozen=True):
    """Where a node answers on one rail."""

    rail: str
    nic: str
    address: str
    port: int


class Measured(Wire, frozen=True):
    """What a pair measured on one rail; rates are in Gb/s, the latency in microseconds.

    ``resent`` and ``resent_back`` are segments sent again per thousand sent, there and back.
    """

    peer: str
    rail: str
    rate: float = 0.0
    back: float = 0.0
    latency: float = 0.0
    resent: float = 0.0
    resent_back: float = 0.0
    problem: str = ""
    to_rail: str = ""
    """The peer's rail where that is another one."""


class NodeAnswer(Wire, frozen=True):
    """What one node has to say."""

    state: Literal["", "ready", "done"] = ""
    endpoints: list[Endpoint] = []
    measured: list[Measured] = []
    checks: list[Check] = []
    problem: str = ""


class Address(Wire, frozen=True):
    """One rank's address on one rail, and what its NIC needs beside it.

    ``address`` is as ``10.1.0.4/16``. ``table`` is the routing table that traffic from it uses.
    """

    rail: str
    address: str
    table: int
    gateway: str = ""
    mtu: int = 0


class NodePlan(Wire, frozen=True):
    """The addresses planned on a node, by the UID of the pod that has them."""

    rails: list[Rail] = []
    pods: Mapping[str, list[Address]] = {}


class NetworkCheckSpec(Wire, frozen=True):
    """Which nodes measure, and how."""

    nodes: Annotated[list[str], Meta(min_length=1, max_length=1024)]
    """The nodes that take part."""
    token: Annotated[str, Meta(min_length=32, max_length=128)]
    """Proves to a node that a peer belongs to this check; made for it alone."""
    rails: Annotated[list[Rail], Meta(max_length=64)] = []
    """The rails; found by the nodes by default."""
    seconds: Annotated[float, Meta(ge=0.02, le=10)] = 0.2
    """Seconds of traffic in each direction."""
    peers: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Peers of each node on each rail; 0: all."""
    across: bool = False
    """Measure from each rail to the others too, where routes lead there."""
    patience: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """Seconds after which a silent peer is given up."""


class NetworkCheckStatus(Wire, frozen=True):
    """The answers of the nodes, and what follows from them."""

    nodes: Mapping[str, NodeAnswer] = {}
    verdict: Verdict = Verdict()


class NetworkCheck(OwnObject, frozen=True):
    """One check of the training network."""

    spec: NetworkCheckSpec
    status: NetworkCheckStatus = NetworkCheckStatus()
    kind: str = "NetworkCheck"


NETWORK_CHECKS = Resource(GROUP, VERSION, "networkchecks", "NetworkCheck", False, NetworkCheck)
