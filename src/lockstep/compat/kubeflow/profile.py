"""Kubeflow's Profile as a Team: its namespace, its owner, its quota."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json, Wire
from lockstep.compat.kubeflow.kinds import PROFILE
from lockstep.compat.translation import Refused


class Subject(Wire, frozen=True):
    """A user, group or service account as Kubernetes' role bindings name them."""

    kind: str = "User"
    name: str = ""
    namespace: str = ""


class Quota(Wire, frozen=True):
    """What a ResourceQuota's ``spec`` says."""

    hard: dict[str, Any] = {}
    scopes: list[str] = []
    scope_selector: Json | None = None


class ProfileSpec(Wire, frozen=True):
    """Whose namespace it is, and how much it may hold."""

    owner: Subject = Subject()
    resource_quota_spec: Quota = Quota()
    plugins: list[Json] = []


class Profile(Wire, frozen=True):
    """A namespace with its owner."""

    metadata: ObjectMeta
    spec: ProfileSpec = ProfileSpec()
    status: Json = {}
    api_version: str = f"{PROFILE.group}/{PROFILE.version}"
    kind: str = PROFILE.kind


PROFILES: Final = PROFILE.read_as(Profile)
_KINDS: Final = ("User", "Group", "ServiceAccount")


def team(profile: Profile) -> Json:
    """Return the Team that *profile* stands for, owned by it.

    Raises:
        Refused: when the profile has no owner, or a field that a Team cannot honour.
    """
    about, spec = profile.metadata, profile.spec
    owner, quota = spec.owner, spec.resource_quota_spec
    if not owner.name:
        raise Refused("spec.owner.name", owner.name, "name the user to whom the profile belongs")
    if owner.kind not in _KINDS:
        raise Refused("spec.owner.kind", owner.kind, f"say one of {', '.join(_KINDS)}")
    for number, plugin in enumerate(spec.plugins):
        raise Refused(f"spec.plugins[{number}]", plugin.get("kind"), "a Team has no plugins")
    if quota.scopes or quota.scope_selector:
        field = "scopes" if quota.scopes else "scopeSelector"
        raise Refused(f"spec.resourceQuotaSpec.{field}", None, "a Team's quota counts every pod")
    account = owner.kind == "ServiceAccount"
    name = f"{owner.namespace or about.name}/{owner.name}" if account else owner.name
    reference = {
        "apiVersion": profile.api_version,
        "kind": profile.kind,
        "name": about.name,
        "uid": about.uid,
        "controller": True,
    }
    return {
        "metadata": {"name": about.name, "ownerReferences": [reference]},
        "spec": {
            "members": [{"kind": owner.kind, "name": name, "role": "Admin"}],
            "quota": quota.hard,
        },
    }


def status(profile: Profile, problem: str) -> Json:
    """Return the status of *profile* in Kubeflow's words: what went wrong, or that all is there."""
    wanted = (
        {"type": "Failed", "status": "True", "message": problem}
        if problem
        else {"type": "Successful", "status": "True", "message": ""}
    )
    return {"conditions": [wanted]}
