"""et-operator's objects, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Json
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class Replicas(Strict, frozen=True):
    """The launcher, or the workers."""

    template: Json
    replicas: Positive = 1
    min_replicas: Positive | None = None
    max_replicas: Positive | None = None
    restart_policy: Literal["Always", "OnFailure", "Never", ""] = ""


class ReplicaSpecs(Strict, frozen=True):
    """Both."""

    launcher: Replicas
    worker: Replicas


class TrainingJobSpec(Strict, frozen=True):
    """What an elastic job says."""

    et_replica_specs: ReplicaSpecs
    clean_pod_policy: Literal["All", "Running", "None", ""] = ""
    launcher_attach_mode: Literal["ssh", ""] = ""
    slots_per_worker: Positive | None = None
    restart_policy: Literal["Never", "OnFailure", ""] = ""
    backoff_limit: Count | None = None


class Selector(Strict, frozen=True):
    """Which job is scaled."""

    name: str = ""


class Amount(Strict, frozen=True):
    """How many workers, or which."""

    count: Positive | None = None
    pod_names: list[str] = []


class ScaleSpec(Strict, frozen=True):
    """What a ScaleIn or a ScaleOut says; without a script the others have no meaning."""

    selector: Selector = Selector()
    to_add: Amount | None = None
    to_delete: Amount | None = None
    timeout: Count | None = None
    env: list[Json] = []
    backoff_limit: Count | None = None
