"""Reviews of identity and access: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.auth.access import from_review
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.auth.service_accounts import ISSUER
from lockstep.apiserver.bodies import not_registered, read_object
from lockstep.apiserver.builtin import REVIEWS, Kind
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.gate import Gate
from lockstep.apiserver.handlers.options import write_options
from lockstep.apiserver.negotiation import require_as_it_is
from lockstep.apiserver.patch import Writer, builtin, track
from lockstep.apiserver.routes import Route
from lockstep.apiserver.schema.causes import Cause, invalid
from lockstep.http import Request, Response

_STATUS = frozenset({"status"})


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
        kind = next(k for k in REVIEWS if (k.group, k.plural) == (route.group, route.plural))
        if request.method != "POST" or route.name:
            raise status.method_not_allowed()
        require_as_it_is(request)
        options = write_options(
            request.query, request.headers.get("user-agent", ""), kind="CreateOptions"
        )
        review = read_object(request, kind.kind)
        review = {"kind": kind.kind, "apiVersion": kind.api_version, **review}
        if review.get("metadata") is None:
            review["metadata"] = {}
        _require_kind(review, kind)
        spec = review.get("spec") or {}
        by = Writer(options.manager, kind.api_version, self._clock())
        track(None, review, builtin(kind.schema_name), by, ignored=_STATUS)
        if kind.kind == "SelfSubjectReview":
            review["metadata"]["creationTimestamp"] = timestamp(self._clock())
        review["status"] = self._answers[route.group, route.plural](user, spec, route.namespace)
        if kind.kind == "SelfSubjectRulesReview":
            review["spec"] = {}
            review["metadata"].pop("managedFields", None)
        return Response(201, encode(review))

    def _who_am_i(self, user: User, _spec: Json, _namespace: str) -> Json:
        return {"userInfo": user.to_object()}

    def _token(self, _user: User, spec: Json, _namespace: str) -> Json:
        found = self._gate.authenticator.bearer(f"Bearer {spec.get('token', '')}", self._clock())
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        audiences = spec.get("audiences") or [ISSUER]
        return {"authenticated": True, "user": found.to_object(), "audiences": audiences}

    def _own_access(self, user: User, spec: Json, _namespace: str) -> Json:
        return self._decide(user, spec, [])

    def _access(self, _user: User, spec: Json, _namespace: str) -> Json:
        groups = tuple(spec.get("groups") or ())
        causes = []
        if not spec.get("user") and not groups:
            causes.append(
                invalid("spec.user", "", "at least one of user or group must be specified")
            )
        return self._decide(User(spec.get("user") or "", groups), spec, causes)

    def _local_access(self, user: User, spec: Json, namespace: str) -> Json:
        given = (spec.get("resourceAttributes") or {}).get("namespace", "")
        if given != namespace:
            where = "spec.resourceAttributes.namespace"
            raise _wrong([invalid(where, given, "must match metadata.namespace")])
        return self._access(user, spec, namespace)

    def _decide(self, user: User, spec: Json, causes: list[Cause]) -> Json:
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None and path is not None:
            shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
            why = "cannot be specified in combination with resourceAttributes"
            causes = [invalid("spec.nonResourceAttributes", shown, why), *causes]
        wish = from_review(spec)
        if wish is None and not causes:
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            causes = [invalid("spec.resourceAttributes", None, why)]
        if causes or wish is None:
            raise _wrong(causes)
        allowed, reason = self._gate.rbac.explain(user, wish)
        return {"allowed": allowed, **({"reason": reason} if reason else {})}

    def _own_rules(self, user: User, spec: Json, _namespace: str) -> Json:
        if not spec.get("namespace"):
            raise status.bad_request("no namespace on request")
        rules = self._gate.rbac.rules_of(user, spec["namespace"])
        listed = [rule.to_object() for rule in rules]
        return {
            "resourceRules": [rule for rule in listed if "resources" in rule],
            "nonResourceRules": [rule for rule in listed if "nonResourceURLs" in rule],
            "incomplete": False,
        }


def _wrong(causes: list[Cause]) -> status.StatusError:
    return status.invalid("authorization.k8s.io", "", "", causes)


def _require_kind(review: Json, kind: Kind) -> None:
    given = review["apiVersion"], review["kind"]
    if given != (kind.api_version, kind.kind):
        raise status.bad_request(
            f"{given[1]} in version {given[0].rpartition('/')[2]!r} cannot be handled as a "
            f"{kind.kind}: {not_registered(*given)}"
        )
