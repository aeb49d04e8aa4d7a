"""Answers as JSON, and every error as one with words."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from aiohttp import web

from lockstep.console.sessions import Refused
from lockstep.console.views.form import BadField
from lockstep.console.views.query import BadQuery
from lockstep.kube.errors import ApiError

log = logging.getLogger(__name__)


class Unreadable(ValueError):
    """A body that is not what the endpoint takes; the message says what is."""


def answer(tree: Any, status: int = 200) -> web.Response:
    """Return *tree* as JSON."""
    return web.Response(
        body=msgspec.json.encode(tree), status=status, content_type="application/json"
    )


def problem(status: int, message: str, **more: Any) -> web.Response:
    """Return an error: its words, and what else is known of it."""
    return answer({"error": {"message": message, **more}}, status)


def of(error: Exception) -> web.Response:
    """Return the answer that an exception means."""
    match error:
        case ApiError():
            causes = [{"field": c.field, "message": c.message} for c in error.causes]
            status = error.status if 400 <= error.status < 500 else 503
            return problem(status, error.message, reason=error.reason, causes=causes)
        case BadField():
            return problem(422, str(error), field=error.field)
        case Refused():
            return problem(403, str(error))
        case BadQuery() | Unreadable():
            return problem(400, str(error))
        case web.HTTPException():
            return problem(error.status, error.reason)
    log.error("a request failed", exc_info=error)
    return problem(500, "the console failed; its log says how")


async def body(request: web.Request, type_: Any) -> Any:
    """Return the body of a request as *type_*.

    Raises:
        Unreadable: when it is not one.
        HTTPException: when it is too large.
    """
    try:
        return msgspec.json.decode(await request.read(), type=type_)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"body: {error}") from None
