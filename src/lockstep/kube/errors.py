"""What can go wrong between Lockstep and an API server, one class for each kind of answer."""

from __future__ import annotations

import msgspec

from lockstep.api.wire import Wire


class Cause(Wire, frozen=True):
    """One reason for which an object was refused."""

    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(Wire, frozen=True):
    name: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """The API server's own description of a failure (``metav1.Status``)."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


class ConfigError(Exception):
    """The configuration that says which API server to use, and as whom, is missing or wrong."""


class ApiError(Exception):
    """A request failed; *status* is the HTTP status, 0 when no answer came."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        causes: tuple[Cause, ...] = (),
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class BadRequest(ApiError):
    """The request makes no sense to the server (400)."""


class Unauthorized(ApiError):
    """The server does not know who asks (401)."""


class Forbidden(ApiError):
    """The user may not do this (403)."""


class NotFound(ApiError):
    """There is no such object, or no such kind (404)."""


class AlreadyExists(ApiError):
    """An object of that name is there already (409)."""


class Conflict(ApiError):
    """The object has changed meanwhile, or its state does not allow this (409)."""


class Gone(ApiError):
    """The version asked for is no longer kept (410): list again."""


class Invalid(ApiError):
    """The object breaks rules; *causes* name the fields (422)."""


class TooManyRequests(ApiError):
    """The server asks to come back later, or a disruption budget forbids an eviction (429)."""


class ServerFailed(ApiError):
    """The server failed or is overloaded (5xx)."""


class Unreachable(ApiError):
    """No answer came: the connection failed or broke, or the deadline passed.

    *acted* is false where the server has certainly not seen the request.
    """

    def __init__(self, reason: str, message: str, *, acted: bool = True) -> None:
        super().__init__(0, reason, message)
        self.acted = acted


class Undecodable(ApiError):
    """The answer is not what this client can read; the request itself may well have worked."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Undecodable", message)


class NotLeading(ApiError):
    """A write was held back because this process does not lead (any more)."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "NotLeading", message)


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_DECODER = msgspec.json.Decoder(Status)


def from_response(
    status: int, body: bytes, *, retry_after: str | None = None, what: str = ""
) -> ApiError:
    """Return the error that an answer with *status* 400 or above means; *what* was asked for."""
    try:
        parsed = _DECODER.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        text = body[:300].decode("utf-8", "replace").strip()
        parsed = Status(message=f"{what}: HTTP {status}" + (f": {text}" if text else ""))
    return from_status(parsed, status, retry_after=retry_after, what=what)


def from_status(
    parsed: Status, code: int | None = None, *, retry_after: str | None = None, what: str = ""
) -> ApiError:
    """Return the error that a Status object means, as watches send it in their ERROR events."""
    status = code or parsed.code or 500
    kind = _BY_STATUS.get(status, ServerFailed if status >= 500 else ApiError)
    if status == 409 and parsed.reason == "AlreadyExists":
        kind = AlreadyExists
    details = parsed.details or _Details()
    return kind(
        status,
        parsed.reason,
        parsed.message or f"{what}: HTTP {status} {parsed.reason}".strip(": "),
        tuple(details.causes or ()),
        retry_after=_seconds(retry_after) or details.retry_after_seconds or None,
    )


def _seconds(retry_after: str | None) -> float | None:
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        # The header may hold a date; API servers send seconds.
        return None
