"""Kubernetes' own jobs, as far as they are honoured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Json
from lockstep.compat.translation import Strict

Count = Annotated[int, Meta(ge=0)]


class OnExitCodes(Strict, frozen=True):
    """Exit codes that a rule is about."""

    operator: Literal["In", "NotIn"]
    values: Annotated[list[int], Meta(min_length=1)]
    container_name: str | None = None


class FailureRule(Strict, frozen=True):
    """What is done about a pod's failure."""

    action: Literal["FailJob", "Ignore", "Count"]
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[Json] = []


class PodFailurePolicy(Strict, frozen=True):
    """Rules, the first that fits is followed."""

    rules: list[FailureRule] = []


class JobSpec(Strict, frozen=True):
    """What a Job says; the API server makes the selector, and the labels that it matches."""

    template: Json
    parallelism: Annotated[int, Meta(ge=1)] | None = None
    completions: Annotated[int, Meta(ge=1)] | None = None
    completion_mode: Literal["Indexed", "NonIndexed"] | None = None
    backoff_limit: Count | None = None
    active_deadline_seconds: Count | None = None
    ttl_seconds_after_finished: Count | None = None
    suspend: bool | None = None
    selector: Json | None = None
    manual_selector: Literal[False] | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None
