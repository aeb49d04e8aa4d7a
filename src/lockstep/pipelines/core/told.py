"""What an engine is told of a run and its steps, and what it says is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

DEPTH: Final = 64
"""Most graphs within graphs."""
MOST: Final = 50_000
"""Most steps of a run."""
START_WITHIN: Final = 300.0
"""Seconds after which a pod that something keeps from starting fails its step."""
EXPLAIN_EVERY: Final = 20.0
"""Seconds between two questions why a pod does not start."""
ARTEFACTS: Final = "/lockstep-artefacts"
"""Where helpers of steps see the directory of the machine that stands for ``minio://``."""
FAULTS: Final = 5
"""Tries that a step may lose through no fault of its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How a step's pod or object is doing."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Lost"]
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    address: str = ""
    """Where it is reached once it is ready; empty until then."""
    stuck: bool = False
    """Whether something on its node keeps it from starting."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a step gave before, and which."""

    outputs: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Run:
    """What expressions and names are made of."""

    name: str
    namespace: str
    uid: str
    created: str = ""
    artefacts: str = ""
    """Directory that stands for ``minio://`` where a run names no Secret; empty where none does."""

    def variables(self) -> dict[str, Any]:
        """Return what expressions see of it."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "created": self.created,
        }


@dataclass(frozen=True, slots=True)
class Ensure:
    """Make the pod or the object of a step's try, if it is not there."""

    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the pod or the object of a step's try."""

    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Explain:
    """Find out why the pod of a step's try does not start: its own status does not say."""

    step: str
    attempt: int


Action = Ensure | Remove | Explain
