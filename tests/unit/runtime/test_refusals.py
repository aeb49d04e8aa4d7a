"""The one table of answers, as a table; and actions against a server that gives them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.errors import ApiError, NotLeading, Unreachable, from_response
from lockstep.runtime.actions import Action, Apply, Change, Create, Delete
from lockstep.runtime.refusals import Answer, answer, ends, refuses, stale

DONE, STALE, REFUSED, RETRY = Answer.DONE, Answer.STALE, Answer.REFUSED, Answer.RETRY
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u1", "controller": True}
CREATE = Create(CONFIG_MAPS, {"metadata": {"name": "x", "ownerReferences": [OWNER]}})
CHANGE = Change(CONFIG_MAPS, "x", {"data": {"k": "v"}}, version="7")
APPLY = Apply(CONFIG_MAPS, "x", {"metadata": {"name": "x"}}, "lockstep-test")
DELETE = Delete(CONFIG_MAPS, "x", "u2")


def failure(code: int, reason: str = "", cause: str = "") -> bytes:
    """Return a Status as kube-apiserver words it."""
    details = {"causes": [{"reason": cause}]} if cause else {}
    status = {"kind": "Status", "code": code, "reason": reason, "message": reason or "no"}
    return msgspec.json.encode({**status, "details": details})


def error(code: int, reason: str = "", cause: str = "") -> ApiError:
    return from_response(code, failure(code, reason, cause))


TERMINATING = ("Forbidden", "NamespaceTerminating")
TABLE = [
    # code, reason, cause: create, change, apply, delete
    (400, "BadRequest", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (401, "Unauthorized", "", RETRY, RETRY, RETRY, RETRY),
    (403, "Forbidden", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (403, *TERMINATING, DONE, DONE, DONE, DONE),
    (404, "NotFound", "", REFUSED, STALE, REFUSED, DONE),
    (405, "MethodNotAllowed", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (409, "AlreadyExists", "", DONE, STALE, STALE, STALE),
    (409, "Conflict", "", STALE, STALE, STALE, STALE),
    (410, "Expired", "", STALE, STALE, STALE, STALE),
    (413, "RequestEntityTooLarge", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (415, "UnsupportedMediaType", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (422, "Invalid", "", REFUSED, REFUSED, REFUSED, REFUSED),
    (429, "TooManyRequests", "", RETRY, RETRY, RETRY, RETRY),
    (500, "InternalError", "", RETRY, RETRY, RETRY, RETRY),
    (503, "ServiceUnavailable", "", RETRY, RETRY, RETRY, RETRY),
    (504, "Timeout", "", RETRY, RETRY, RETRY, RETRY),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[2] or row[1]}")
def test_each_answer_means_one_thing_for_each_action(row: tuple[Any, ...]) -> None:
    code, reason, cause, *expected = row
    given = error(code, reason, cause)
    assert [answer(a, given) for a in (CREATE, CHANGE, APPLY, DELETE)] == expected


@pytest.mark.parametrize(
    "lost", [Unreachable("Connection", "reset"), NotLeading("lease lost")], ids=["cut", "fenced"]
)
@pytest.mark.parametrize("action", [CREATE, CHANGE, APPLY, DELETE])
def test_no_answer_is_no_refusal(lost: ApiError, action: Action) -> None:
    assert answer(action, lost) is RETRY
    assert not refuses(lost)


@pytest.mark.parametrize(
    ("given", "refused", "late", "ending"),
    [
        (error(403, "Forbidden"), True, False, False),
        (error(403, *TERMINATING), False, False, True),
        (error(404, "NotFound"), True, True, False),
        (error(409, "AlreadyExists"), False, True, False),
        (error(409, "Conflict"), False, True, False),
        (error(422, "Invalid"), True, False, False),
        (error(429, "TooManyRequests"), False, False, False),
        (error(503, "ServiceUnavailable"), False, False, False),
    ],
)
def test_short_questions(given: ApiError, refused: bool, late: bool, ending: bool) -> None:
    assert (refuses(given), stale(given), ends(given)) == (refused, late, ending)
