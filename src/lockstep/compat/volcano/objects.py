"""Volcano's jobs, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Json
from lockstep.compat.tiers import NetworkTopology
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]


class Policy(Strict, frozen=True):
    """What is done on an event."""

    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: int | None = None


class DependsOn(Strict, frozen=True):
    """Tasks that go before."""

    name: list[str] = []
    iteration: Literal["any", "all", ""] = ""


class Volume(Strict, frozen=True):
    """A claim that all pods mount: one that is there, or one to be made."""

    mount_path: Annotated[str, Meta(min_length=1)]
    volume_claim_name: str = ""
    volume_claim: Json | None = None


class Task(Strict, frozen=True):
    """Pods that are alike."""

    template: Json
    name: str = ""
    replicas: Annotated[int, Meta(ge=1)] = 1
    min_available: Count | None = None
    policies: list[Policy] = []
    max_retry: Count | None = None
    depends_on: DependsOn | None = None
    topology_policy: Literal["none", "best-effort", ""] = ""
    """Whether a node should align a pod's processors: the kubelet does so as it is set up."""


class JobSpec(Strict, frozen=True):
    """What a Job of Volcano says."""

    tasks: Annotated[list[Task], Meta(min_length=1)]
    scheduler_name: str = ""
    min_available: Count | None = None
    policies: list[Policy] = []
    plugins: dict[str, list[str]] = {}
    volumes: list[Volume] = []
    queue: str = "default"
    max_retry: Count = 3
    ttl_seconds_after_finished: Count | None = None
    priority_class_name: str = ""
    network_topology: NetworkTopology | None = None
