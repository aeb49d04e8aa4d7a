"""The admission policy that writes down who created a job, for clusters with Kubernetes 1.36.

It does what the embedded API server does by itself: a new job or gang is told to be of the user who
made the request, and not the one that the object states; Lockstep's own parts hand on what the job
says; and no later change passes it to another user.
"""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.admission_policy import both, by_others, rule
from lockstep.api.names import CREATOR_ANNOTATION, GROUP, SYSTEM_NAMESPACE

Json = dict[str, Any]

NAME: Final = "lockstep-creator"
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_PATH: Final = "/metadata/annotations/" + CREATOR_ANNOTATION.replace("/", "~1")
_HAS_NONE: Final = "!has(object.metadata.annotations)"
_SAID: Final = (
    f"has({{0}}.metadata.annotations) && '{CREATOR_ANNOTATION}' in {{0}}.metadata.annotations"
)


def objects() -> list[Json]:
    """Return the policy and its binding."""
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": [rule(GROUP, "trainingjobs", "gangs")]},
        "matchConditions": [{"name": "changes-it", "expression": _wrong()}],
        "variables": [{"name": "creator", "expression": _creator()}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch()}}],
    }
    return both("MutatingAdmissionPolicy", NAME, spec, {})


def _creator() -> str:
    """Return the expression of whose the object is; empty where that is not known."""
    return (
        "request.operation == 'CREATE' ? request.userInfo.username : "
        f"({_SAID.format('oldObject')} ? oldObject.metadata.annotations['{CREATOR_ANNOTATION}'] "
        ": '')"
    )


def _wrong() -> str:
    """Return the expression of whether the policy has a word to say."""
    return f"request.operation == 'UPDATE' || {by_others(_OWN)}"


def _patch() -> str:
    written = f"JSONPatch{{op: 'add', path: '{_PATH}', value: variables.creator}}"
    gone = f"JSONPatch{{op: 'remove', path: '{_PATH}'}}"
    whole = (
        "JSONPatch{op: 'add', path: '/metadata/annotations', "
        f"value: {{'{CREATOR_ANNOTATION}': variables.creator}}}}"
    )
    return (
        f"variables.creator == '' ? ({_SAID.format('object')} ? [{gone}] : []) : "
        f"({_HAS_NONE} ? [{whole}] : [{written}])"
    )
