"""JobSets, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lockstep.api.wire import Json
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]


class DependsOn(Strict, frozen=True):
    """A replicated job that goes before."""

    name: str
    status: Literal["Ready", "Complete"]


class ReplicatedJob(Strict, frozen=True):
    """Jobs that are alike; the template is that of a Job."""

    name: str
    template: Json
    replicas: Annotated[int, Meta(ge=1)] = 1
    group_name: str = "default"
    depends_on: list[DependsOn] = []


class Network(Strict, frozen=True):
    """How its pods are called: they always have names."""

    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    subdomain: str = ""
    publish_not_ready_addresses: bool | None = None


class SuccessPolicy(Strict, frozen=True):
    """Which jobs' ends are the set's."""

    operator: Literal["All", "Any"] = "All"
    target_replicated_jobs: list[str] = []


class FailureRule(Strict, frozen=True):
    """What is done about the failure of some of its jobs."""

    action: Literal["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"]
    name: str = ""
    on_job_failure_reasons: list[str] = []
    target_replicated_jobs: list[str] = []


class FailurePolicy(Strict, frozen=True):
    """How often the set starts again."""

    max_restarts: Count = 0
    restart_strategy: Literal["Recreate", "BlockingRecreate", "InPlaceRestart", ""] = ""
    rules: list[FailureRule] = []


class StartupPolicy(Strict, frozen=True):
    """In which order the jobs start: all at once, or each once those before it are ready."""

    startup_policy_order: Literal["AnyOrder", "InOrder"] = "AnyOrder"


class Coordinator(Strict, frozen=True):
    """The pod that the others are told of."""

    replicated_job: str
    job_index: Count = 0
    pod_index: Count = 0


class ClaimName(Strict, frozen=True):
    """What a claim is called."""

    name: Annotated[str, Meta(min_length=1)]


class ClaimTemplate(Strict, frozen=True):
    """A claim for all jobs whose pods mount a volume of its name."""

    metadata: ClaimName
    spec: Json = {}
    api_version: str = ""
    kind: str = ""


class Retention(Strict, frozen=True):
    """Whether claims go with the JobSet."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"

    @property
    def stays(self) -> bool:
        """Whether they stay."""
        return self.when_deleted == "Retain"


class ClaimPolicy(Strict, frozen=True):
    """Claims that the JobSet brings along."""

    templates: list[ClaimTemplate] = []
    retention_policy: Retention | None = None


class JobSetSpec(Strict, frozen=True):
    """What a JobSet says."""

    replicated_jobs: Annotated[list[ReplicatedJob], Meta(min_length=1)]
    network: Network | None = None
    success_policy: SuccessPolicy | None = None
    failure_policy: FailurePolicy | None = None
    startup_policy: StartupPolicy | None = None
    coordinator: Coordinator | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    ttl_seconds_after_finished: Count | None = None
    volume_claim_policies: list[ClaimPolicy] = []
