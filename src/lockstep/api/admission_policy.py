"""The objects by which clusters hold our rules at admission: a policy and its binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstep.api.wire import Json

_VERSION: Final = "admissionregistration.k8s.io/v1"
CHANGES: Final = ("CREATE", "UPDATE")


def _both(kind: str, name: str, policy: Json, binding: Json) -> list[Json]:
    """Return a policy of a kind and its binding, by their specs."""
    meta = {"name": name, "labels": {"app.kubernetes.io/part-of": "lockstep"}}
    specs = {kind: policy, f"{kind}Binding": {"policyName": name, **binding}}
    return [
        {"apiVersion": _VERSION, "kind": one, "metadata": meta, "spec": spec}
        for one, spec in specs.items()
    ]


def validating(
    name: str,
    rules: Sequence[Json],
    variables: Mapping[str, str],
    valid: str,
    message: str,
    *,
    namespaces: Json | None = None,
    conditions: Mapping[str, str] | None = None,
    parameters: Json | None = None,
    fails: str = "Fail",
    **binding: Any,
) -> list[Json]:
    """Return a ValidatingAdmissionPolicy (Kubernetes 1.30 and newer) and its binding.

    The expressions *valid* and *message* say what is let in, and why the rest is not. *parameters*
    names the kind whose objects ``params`` are, each in turn.
    """
    held: Json = {"validationActions": ["Deny"]}
    policy: Json = {"failurePolicy": fails}
    if parameters:
        policy["paramKind"] = parameters
        held["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    policy["matchConstraints"] = _constraints(rules, namespaces)
    if conditions:
        policy["matchConditions"] = _named(conditions)
    policy["variables"] = _named(variables)
    policy["validations"] = [
        {"expression": valid, "reason": "Forbidden", "messageExpression": message}
    ]
    return _both("ValidatingAdmissionPolicy", name, policy, held | binding)


def mutating(
    name: str,
    rules: Sequence[Json],
    variables: Mapping[str, str],
    patch: str,
    condition: tuple[str, str],
    *,
    namespaces: Json | None = None,
) -> list[Json]:
    """Return a MutatingAdmissionPolicy (Kubernetes 1.36 and newer) and its binding.

    The expression *patch* gives the JSON patches of an object for which the *condition* holds.
    """
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints(rules, namespaces),
        "matchConditions": _named(dict([condition])),
        "variables": _named(variables),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return _both("MutatingAdmissionPolicy", name, policy, {})


def _constraints(rules: Sequence[Json], namespaces: Json | None) -> Json:
    # All but the rules is what the server would fill in, so applying it again is no change.
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": namespaces or {},
        "objectSelector": {},
        "resourceRules": [{**rule, "scope": "*"} for rule in rules],
    }


def _named(expressions: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]


def rule(
    group: str, *plurals: str, version: str = "*", operations: Sequence[str] = CHANGES
) -> Json:
    """Return a rule that matches operations on kinds of a group."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(plurals),
    }


def by_others(prefix: str) -> str:
    """Return the expression of whether a user with another beginning of its name asks."""
    return f"!request.userInfo.username.startsWith('{prefix}')"


def has(what: str, field: str, key: str) -> str:
    """Return the expression of whether the object *what* has a label or an annotation."""
    return f"has({what}.metadata.{field}) && '{key}' in {what}.metadata.{field}"
