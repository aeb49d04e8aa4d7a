"""Built-in resources that are only ever created, and answered instead of stored."""

from __future__ import annotations

from lockstep.apiserver.builtin.kind import Kind

_CREATE = ("create",)


def _review(group: str, kind: str, package: str, *, namespaced: bool = False) -> Kind:
    return Kind(
        group=group,
        version="v1",
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=namespaced,
        singular=kind.lower(),
        schema_name=f"io.k8s.api.{package}.v1.{kind}",
        verbs=_CREATE,
    )


REVIEWS: list[Kind] = [
    _review("", "Binding", "core", namespaced=True),
    _review("authentication.k8s.io", "SelfSubjectReview", "authentication"),
    _review("authentication.k8s.io", "TokenReview", "authentication"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", "authorization", namespaced=True),
    _review("authorization.k8s.io", "SelfSubjectAccessReview", "authorization"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview", "authorization"),
    _review("authorization.k8s.io", "SubjectAccessReview", "authorization"),
]
"""The reviews of identity and access, and the binding of a pod to a node."""
