"""What answers mean."""

from __future__ import annotations

import json

import pytest

from lockstep.kube import errors
from lockstep.kube.errors import ApiError, Cause, from_response


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", ApiError),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFailed),
        (504, "Timeout", errors.ServerFailed),
    ],
)
def test_each_answer_has_its_class(status: int, reason: str, kind: type[ApiError]) -> None:
    body = json.dumps({"kind": "Status", "reason": reason, "message": "why", "code": status})
    error = from_response(status, body.encode())
    assert type(error) is kind
    assert (error.status, error.reason, str(error)) == (status, reason, "why")


def test_causes_name_the_fields() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "too big", "field": "spec.replicas"}
    body = json.dumps({"reason": "Invalid", "details": {"causes": [cause]}}).encode()
    assert from_response(422, body).causes == (
        Cause(reason="FieldValueInvalid", message="too big", field="spec.replicas"),
    )


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [("3", 0, 3.0), (None, 7, 7.0), ("3", 7, 3.0), ("Wed, 21 Oct 2015", 0, None), (None, 0, None)],
)
def test_the_server_may_say_when_to_come_back(
    header: str | None, details: int, expected: float | None
) -> None:
    body = json.dumps({"details": {"retryAfterSeconds": details}}).encode()
    assert from_response(429, body, retry_after=header).retry_after == expected


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[1]", b"\xff\xfe"])
def test_an_answer_that_is_no_status_is_quoted(body: bytes) -> None:
    error = from_response(502, body, what="GET /api")
    assert isinstance(error, errors.ServerFailed)
    assert "GET /api: HTTP 502" in str(error)
    assert body.decode("utf-8", "replace") in str(error)
