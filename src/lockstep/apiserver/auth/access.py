"""May a user do this? The refusals, in Kubernetes' words."""

from __future__ import annotations

import json
from typing import Any

from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.status import StatusError, forbidden


def require(rbac: Rbac, user: User, wish: Attributes) -> None:
    """Let a permitted request pass.

    Raises:
        StatusError: The user may not do that (403).
    """
    if not rbac.allows(user, wish):
        raise refusal(user, wish)


def refusal(user: User, wish: Attributes) -> StatusError:
    """Return the answer to a request that its user may not make."""
    why = explain(user, wish)
    if not wish.resource:
        return StatusError(403, "Forbidden", f"forbidden: {why}", {})
    return forbidden(wish.group, wish.resource, wish.name, why)


def explain(user: User, wish: Attributes) -> str:
    """Return who cannot do what, and where."""
    head = f"User {json.dumps(user.name)} cannot {wish.verb}"
    if not wish.resource:
        return f"{head} path {json.dumps(wish.path)}"
    where = f'in the namespace "{wish.namespace}"' if wish.namespace else "at the cluster scope"
    return f'{head} resource "{wish.target}" in API group "{wish.group}" {where}'


def from_review(spec: dict[str, Any]) -> Attributes | None:
    """Return what a review of access asks about; nothing unless it asks about one thing."""
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is (other is None):
        return None
    if other is not None:
        return Attributes(verb=other.get("verb", ""), path=other.get("path", ""))
    found = resource or {}
    return Attributes(
        verb=found.get("verb", ""),
        group=found.get("group", ""),
        version=found.get("version", ""),
        resource=found.get("resource", ""),
        subresource=found.get("subresource", ""),
        namespace=found.get("namespace", ""),
        name=found.get("name", ""),
    )
