"""Reviews of identity and access: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.apiserver import status
from lockstep.apiserver.auth.access import from_review
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.bodies import read_object
from lockstep.apiserver.gate import Gate
from lockstep.apiserver.http import Request, Response
from lockstep.apiserver.routes import Route

Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class Reviews:
    """Answers the create-only kinds of ``authentication`` and ``authorization``."""

    def __init__(self, gate: Gate, clock: Callable[[], float]) -> None:
        self._gate = gate
        self._clock = clock
        self._answers: dict[tuple[str, str], Callable[[User, Json, str], Json]] = {
            ("authentication.k8s.io", "selfsubjectreviews"): self._who_am_i,
            ("authentication.k8s.io", "tokenreviews"): self._token,
            ("authorization.k8s.io", "selfsubjectaccessreviews"): self._own_access,
            ("authorization.k8s.io", "selfsubjectrulesreviews"): self._own_rules,
            ("authorization.k8s.io", "subjectaccessreviews"): self._access,
            ("authorization.k8s.io", "localsubjectaccessreviews"): self._local_access,
        }

    def answers(self, route: Route) -> bool:
        """Return whether *route* is that of a review."""
        return (route.group, route.plural) in self._answers

    def answer(self, request: Request, route: Route, user: User) -> Response:
        """Answer the review in the body.

        Raises:
            StatusError: when it asks about nothing, or not about one thing.
        """
        if request.method != "POST":
            raise status.method_not_allowed("reviews can only be created")
        review = read_object(request)
        spec = review.get("spec") or {}
        found = self._answers[route.group, route.plural](user, spec, route.namespace)
        review.setdefault("metadata", {"creationTimestamp": None})
        return Response(201, _encode({**review, "status": found}))

    def _who_am_i(self, user: User, _spec: Json, _namespace: str) -> Json:
        return {"userInfo": user.to_object()}

    def _token(self, _user: User, spec: Json, _namespace: str) -> Json:
        found = self._gate.authenticator.bearer(f"Bearer {spec.get('token', '')}", self._clock())
        if found is None:
            return {"user": {}, "error": "the token is not known or no longer valid"}
        audiences = {"audiences": spec["audiences"]} if spec.get("audiences") else {}
        return {"authenticated": True, "user": found.to_object(), **audiences}

    def _own_access(self, user: User, spec: Json, _namespace: str) -> Json:
        return self._decide(user, spec)

    def _access(self, _user: User, spec: Json, _namespace: str) -> Json:
        groups = tuple(spec.get("groups") or ())
        if not spec.get("user") and not groups:
            raise status.bad_request("at least one of user or group must be specified")
        return self._decide(User(spec.get("user") or "", groups), spec)

    def _local_access(self, user: User, spec: Json, namespace: str) -> Json:
        if (spec.get("resourceAttributes") or {}).get("namespace", "") != namespace:
            raise status.bad_request(
                "spec.resourceAttributes.namespace must match the namespace of the request"
            )
        return self._access(user, spec, namespace)

    def _decide(self, user: User, spec: Json) -> Json:
        wish = from_review(spec)
        if wish is None:
            raise status.bad_request(
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            )
        if self._allows(user, wish):
            return {"allowed": True, "reason": "RBAC: allowed"}
        return {"allowed": False}

    def _allows(self, user: User, wish: Attributes) -> bool:
        return self._gate.rbac.allows(user, wish)

    def _own_rules(self, user: User, spec: Json, _namespace: str) -> Json:
        rules = self._gate.rbac.rules_of(user, spec.get("namespace") or "default")
        listed = [rule.to_object() for rule in rules]
        return {
            "resourceRules": [rule for rule in listed if "resources" in rule],
            "nonResourceRules": [rule for rule in listed if "nonResourceURLs" in rule],
            "incomplete": False,
        }
