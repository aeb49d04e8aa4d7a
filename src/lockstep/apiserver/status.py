"""Errors as the API tells them: ``metav1.Status`` with reason, details and causes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lockstep.api.wire import Json

if TYPE_CHECKING:
    from lockstep.apiserver.schema import Cause
    from lockstep.apiserver.store import Key


# Where Kubernetes keeps objects whose place is not named after their resource.
_ETCD_PLACES = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


class StatusError(Exception):
    """A request that is answered with a failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        *,
        continue_token: str = "",
        is_page: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = continue_token
        self.is_page = is_page
        """Whether it is answered as plain text, as what no API answers is."""

    def to_object(self) -> Json:
        """Return the Status object."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after(self) -> int | None:
        """Return after how many seconds the client should try again, if the error says so."""
        seconds: int | None = (self.details or {}).get("retryAfterSeconds")
        return seconds


def qualified(group: str, plural: str) -> str:
    """Return how messages name a resource: ``plural.group``, or the plural alone."""
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str, **more: Any) -> Json:
    details: Json = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value}


def bad_request(message: str) -> StatusError:
    """Say that the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """Say that these credentials belong to no known user."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """Say that the user may not do this."""
    of = f'{qualified(group, plural)} "{name}"' if name else qualified(group, plural)
    return StatusError(403, "Forbidden", f"{of} is forbidden: {why}", _details(group, plural, name))


def not_found(group: str, plural: str, name: str) -> StatusError:
    """Say that there is no such object."""
    return StatusError(
        404,
        "NotFound",
        f'{qualified(group, plural)} "{name}" not found',
        _details(group, plural, name),
    )


def no_such_path() -> StatusError:
    """Say that nothing is served under the path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def page_not_found() -> StatusError:
    """Say that nothing at all is served under the path."""
    return StatusError(404, "NotFound", "404 page not found", is_page=True)


def method_not_allowed() -> StatusError:
    """Say that the resource does not support the verb."""
    text = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", text, {})


def not_acceptable(made: Iterable[str]) -> StatusError:
    """Say that none of the forms is made that the client would take."""
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(made)}"
    return StatusError(406, "NotAcceptable", text, {})


def only_these(made: Iterable[str]) -> StatusError:
    """Say that an object is not made in the form that the client would take."""
    text = f"only the following media types are accepted: {', '.join(made)}"
    return StatusError(406, "NotAcceptable", text)


def failed(message: str) -> StatusError:
    """Say that the server failed at something, for which Kubernetes has no reason."""
    return StatusError(500, "", message)


def already_exists(group: str, plural: str, name: str) -> StatusError:
    """Say that the name is taken."""
    return StatusError(
        409,
        "AlreadyExists",
        f'{qualified(group, plural)} "{name}" already exists',
        _details(group, plural, name),
    )


CHANGED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(
    group: str, plural: str, name: str, why: str = CHANGED, causes: list[Json] | None = None
) -> StatusError:
    """Say that the object is not in the state that the request expects."""
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}',
        _details(group, plural, name, causes=causes),
    )


def uid_conflict(group: str, plural: str, key: Key, given: str, uid: str) -> StatusError:
    """Say that the name now belongs to another object."""
    place = "/".join(filter(None, (_ETCD_PLACES.get(plural, plural), key.namespace, key.name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, "
        f"UID in object meta: {uid}"
    )
    return conflict(group, plural, key.name, why)


def name_required(group: str, kind: str) -> StatusError:
    """Say that an object needs a name."""
    from lockstep.apiserver.schema import causes

    return invalid(
        group, kind, "", [causes.required("metadata.name", "name or generateName is required")]
    )


def version_required(group: str, kind: str, name: str) -> StatusError:
    """Say that a replacement must name the version that it replaces."""
    from lockstep.apiserver.schema import causes

    wrong = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return invalid(group, kind, name, [wrong])


def invalid_options(kind: str, causes: Iterable[Cause]) -> StatusError:
    """Say which query parameters, or fields of ``DeleteOptions``, are missing or wrong."""
    return invalid("meta.k8s.io", kind, "", causes)


def terminating(group: str, plural: str, name: str, namespace: str) -> StatusError:
    """Say that nothing new may come into a namespace that is being deleted."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(group, plural, name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error


def expired(message: str, *, continue_token: str = "") -> StatusError:
    """Say that the revision asked for has been compacted away."""
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large_version(asked: int, current: int) -> StatusError:
    """Say that the revision asked for has not come yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return timeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[cause],
        retryAfterSeconds=1,
    )


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> StatusError:
    """Say which fields are wrong."""
    listed = list(causes)
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in listed))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return StatusError(
        422,
        "Invalid",
        f'{qualified(group, kind)} "{name}" is invalid: {text}',
        _details(
            group,
            kind,
            name,
            causes=[
                {"reason": str(c.reason), "message": c.message, "field": c.field} for c in listed
            ],
        ),
    )


def too_large(message: str) -> StatusError:
    """Say that a request, or what it would store, is larger than may be."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def unsupported_media_type(supported: Iterable[str]) -> StatusError:
    """Say which content types a body may have."""
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(supported)}",
    )


def too_many_requests(message: str, retry_after: int, **details: Any) -> StatusError:
    """Say that the client should come back later."""
    seconds = {"retryAfterSeconds": retry_after} if retry_after else {}
    return StatusError(429, "TooManyRequests", message, {**details, **seconds})


def internal(message: str) -> StatusError:
    """Say that the server failed."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")


def timeout(message: str, **details: Any) -> StatusError:
    """Say that the answer is not there in time."""
    return StatusError(504, "Timeout", message, details)
