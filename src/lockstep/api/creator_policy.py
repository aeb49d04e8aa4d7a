"""The admission policy that writes down who created a job, for clusters with Kubernetes 1.36.

It does what the embedded API server does by itself: a new job, gang or pod of ours is told to be of
the user who made the request, and of the user's groups, and not of those that it states; Lockstep's
own parts hand on what a job says to its gang; and no later change passes it to another user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lockstep.api.admission_policy import by_others, has, mutating, rule
from lockstep.api.names import (
    CREATOR_ANNOTATION,
    CREATOR_GROUPS_ANNOTATION,
    GANG_LABEL,
    GROUP,
    SCHEDULER_NAME,
    SYSTEM_NAMESPACE,
)
from lockstep.api.wire import Json

NAME: Final = "lockstep-creator"
KINDS: Final = ("trainingjobs", "gangs")
"""Kinds of our own that are signed, and so are pods that wait for the scheduler without a gang."""
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_SIGNED: Final = {"creator": CREATOR_ANNOTATION, "groups": CREATOR_GROUPS_ANNOTATION}


def signature(user: str, groups: Sequence[str]) -> dict[str, str]:
    """Return the annotations that say who created an object."""
    told = "\n".join(one for one in groups if "\n" not in one)
    return {CREATOR_ANNOTATION: user, **({CREATOR_GROUPS_ANNOTATION: told} if told else {})}


def handed_on(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what annotations say of the creator, for an object that is made for theirs."""
    return {key: annotations[key] for key in _SIGNED.values() if key in annotations}


def unsigned(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return annotations without what they say of a creator: users may have written it."""
    return {key: text for key, text in annotations.items() if key not in _SIGNED.values()}


def creator_of(annotations: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the user and the groups that annotations name; the user is empty where they do not."""
    groups = annotations.get(CREATOR_GROUPS_ANNOTATION, "")
    return annotations.get(CREATOR_ANNOTATION, ""), groups.split("\n") if groups else []


def objects() -> list[Json]:
    """Return the policy and its binding."""
    rules = [rule(GROUP, *KINDS), rule("", "pods", version="v1")]
    return mutating(NAME, rules, _variables(), _patch(), ("changes-it", _wrong()))


def _variables() -> dict[str, str]:
    """Return the expressions of user and groups; empty where they are not known."""
    told = "request.userInfo.groups.filter(g, !g.contains('\\n')).join('\\n')"
    new = {
        "creator": "request.userInfo.username",
        "groups": f"has(request.userInfo.groups) ? {told} : ''",
    }
    return {
        name: f"request.operation == 'CREATE' ? ({new[name]}) : {_said('oldObject', key)}"
        for name, key in _SIGNED.items()
    }


def _said(what: str, key: str) -> str:
    """Return the expression of an annotation; empty where there is none."""
    return f"({has(what, 'annotations', key)} ? {what}.metadata.annotations['{key}'] : '')"


def _wrong() -> str:
    """Return the expression of whether the policy has a word to say."""
    # Pods that parts make come from templates of users, so what they say counts for nothing.
    gang = has("object", "labels", GANG_LABEL)
    alone = f"object.spec.schedulerName == '{SCHEDULER_NAME}' && !({gang})"
    new = f"object.kind == 'Pod' ? ({alone}) : {by_others(_OWN)}"
    changed = " || ".join(
        f"{_said('object', key)} != {_said('oldObject', key)}" for key in _SIGNED.values()
    )
    return f"request.operation == 'CREATE' ? ({new}) : ({changed})"


def _patch() -> str:
    place = "has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', " + (
        "path: '/metadata/annotations', value: {}}]"
    )
    return f"({place})" + "".join(f" + {_written(*one)}" for one in _SIGNED.items())


def _written(name: str, key: str) -> str:
    path = "/metadata/annotations/" + key.replace("/", "~1")
    return (
        f"(variables.{name} != '' ? "
        f"[JSONPatch{{op: 'add', path: '{path}', value: variables.{name}}}] : "
        f"{has('object', 'annotations', key)} ? "
        f"[JSONPatch{{op: 'remove', path: '{path}'}}] : [])"
    )
