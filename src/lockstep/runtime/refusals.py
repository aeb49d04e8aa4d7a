"""How a controller takes each answer of the API server: one table for all rooms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from lockstep.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
    NotLeading,
)
from lockstep.runtime.actions import Action, Apply, Create, Delete

RETRY_REFUSED: Final = 30.0
"""Seconds until a refused action is tried again, where no event comes first.

A quota, a policy or a right that stood in the way may be changed without an event that the
controller follows.
"""
NAMESPACE_ENDS: Final = "NamespaceTerminating"


class Answer(Enum):
    """What an error of the API server means for an action."""

    DONE = "done"
    """The cluster is as the action wants it."""
    STALE = "stale"
    """The decision was made on an old view: look again, and decide anew."""
    REFUSED = "refused"
    """The object is at fault. The same request fails again: tell the user."""
    RETRY = "retry"
    """The moment is at fault, not the object: the same request may work later."""


_BY_STATUS: Final = {
    400: Answer.REFUSED,  # the body makes no sense to the server
    401: Answer.RETRY,  # the token has just expired: the client reads a new one
    403: Answer.REFUSED,  # rights, a policy or a quota forbid it
    404: Answer.STALE,  # the object to change is gone; for other actions see below
    405: Answer.REFUSED,  # the server has no such verb for the kind
    409: Answer.STALE,  # another process wrote first
    410: Answer.STALE,  # the version is no longer kept
    413: Answer.REFUSED,  # the body is larger than the server takes
    415: Answer.REFUSED,  # the server does not take patches of this type
    422: Answer.REFUSED,  # a field breaks a rule of the kind
    429: Answer.RETRY,  # too many requests, or a disruption budget
}
"""Answers that mean the same for each action. Others (5xx, no answer) are retried."""


def answer(action: Action | None, error: ApiError) -> Answer:
    """Return what *error* means for *action*; None stands for a write of the controller's own."""
    if isinstance(error, AlreadyExists):
        # A Create that was sent twice, or by an earlier life of this process.
        return Answer.DONE if isinstance(action, Create) else Answer.STALE
    if isinstance(error, NotFound):
        if isinstance(action, Delete):
            return Answer.DONE
        if isinstance(action, Create | Apply):
            # The namespace is gone, or the kind is not installed.
            return Answer.REFUSED
    if ends(error):
        # All of the namespace goes, and the controller's object with it: nothing to tell.
        return Answer.STALE if action is None else Answer.DONE
    if isinstance(error, NotLeading):
        return Answer.RETRY
    return _BY_STATUS.get(error.status, Answer.RETRY)


def refuses(error: ApiError) -> bool:
    """Return whether the server will not have a new object, now or later."""
    return isinstance(error, NotFound) or answer(None, error) is Answer.REFUSED


def stale(error: Exception) -> bool:
    """Return whether *error* only says that the caches are behind."""
    return isinstance(error, AlreadyExists | Conflict | NotFound)


def ends(error: ApiError) -> bool:
    """Return whether the server creates nothing because the namespace is being deleted."""
    return error.status == 403 and any(one.reason == NAMESPACE_ENDS for one in error.causes)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An action that the server refused."""

    action: Action
    error: ApiError

    def __str__(self) -> str:
        what = f"{self.action.resource.kind} {self.action.name}"
        if isinstance(self.error, AlreadyExists):
            return f"{what} exists already and belongs to something else"
        return f"{what} was refused: {self.error.message}"
