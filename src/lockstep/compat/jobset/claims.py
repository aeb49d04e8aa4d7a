"""The claims that a JobSet brings along: one for all of its jobs whose pods mount it.

Facts: kubernetes-sigs/jobset:pkg/controllers/volume_claim_policy.go and its webhook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.label_syntax import subdomain_problems
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.admission import different
from lockstep.compat.jobset.objects import ClaimPolicy
from lockstep.compat.translation import Refused

_LONGEST: Final = 63


def claims(obj: AnyObject, policies: Sequence[ClaimPolicy], roles: Sequence[Json]) -> list[Json]:
    """Return the claims of *policies*, and give each to the pods of *roles* that mount it.

    Raises:
        Refused: for a name that is taken or no pod mounts.
    """
    rows = [
        (f"spec.volumeClaimPolicies[{p}].templates[{t}].metadata.name", one, policy)
        for p, policy in enumerate(policies)
        for t, one in enumerate(policy.templates)
    ]
    different(((at, one.metadata.name) for at, one, _ in rows), "the name of a claim")
    made = []
    for at, one, policy in rows:
        name = one.metadata.name
        whole = f"{name}-{obj.metadata.name}"
        for problem in subdomain_problems(name):
            raise Refused(at, name, problem)
        if len(whole) > _LONGEST:
            raise Refused(at, name, f"is too long: the claim would be called {whole}")
        _give(roles, name, whole, at)
        stays = policy.retention_policy is not None and policy.retention_policy.stays
        made.append(native.claim(obj, whole, one.spec, stays=stays))
    return made


def _give(roles: Sequence[Json], name: str, claim: str, at: str) -> None:
    mounted = False
    for role in roles:
        spec = role["template"]["spec"]
        if any(volume.get("name") == name for volume in spec.get("volumes") or []):
            raise Refused(at, name, f"replicated job {role['name']} has a volume of that name")
        containers = [*spec["containers"], *(spec.get("initContainers") or [])]
        if any(m.get("name") == name for c in containers for m in c.get("volumeMounts") or []):
            volume = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
            spec["volumes"] = [*(spec.get("volumes") or []), volume]
            mounted = True
    if not mounted:
        raise Refused(at, name, "no container mounts a volume of that name")
