"""Why a patch is refused."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.status import StatusError

_REJECTED = "the server rejected our request due to an error in our request"


class PatchError(StatusError):
    """A patch that cannot be applied, as the answer that the client gets."""

    def __init__(
        self, code: int, reason: str, message: str, details: Any = None, *, hidden: str = ""
    ) -> None:
        super().__init__(code, reason, message, details)
        self.hidden = hidden
        """What is wrong, where Kubernetes keeps that to itself."""


def malformed(message: str) -> PatchError:
    """Say that the patch itself is not well formed."""
    return PatchError(400, "BadRequest", message)


def too_costly(message: str) -> PatchError:
    """Say that a patch is small, but what it makes or the work for it is not."""
    return PatchError(413, "RequestEntityTooLarge", message)


def inapplicable(message: str) -> PatchError:
    """Say that a well-formed patch does not fit the object that it is for."""
    return PatchError(422, "Invalid", _REJECTED, {}, hidden=message)


def failed(message: str) -> PatchError:
    """Say that the patch cannot be merged, which Kubernetes takes for a failure of its own."""
    return PatchError(500, "", message)


def mistyped(message: str) -> PatchError:
    """Say that an applied configuration has not the shape of its kind.

    Kubernetes answers this as an error without a reason, and clients expect it so.
    """
    return PatchError(500, "", message)


def conflicting(message: str, causes: list[dict[str, Any]]) -> PatchError:
    """Say which managers own the fields that an apply would change."""
    return PatchError(409, "Conflict", message, {"causes": causes})
