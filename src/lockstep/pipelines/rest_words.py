"""What requests to the REST face say, read."""

from __future__ import annotations

import json
import re

from aiohttp import web

from lockstep.api.wire import Json
from lockstep.compat.translation import Refused


async def body_of(request: web.Request) -> Json:
    """Return the body of a request.

    Raises:
        Refused: when it is no object in JSON.
    """
    try:
        found = await request.json()
    except ValueError as error:
        raise Refused("body", None, f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refused("body", None, "must be an object")
    return found


def filtered(text: str) -> str | None:
    """Return the name that a filter asks for; None where it asks for none.

    Raises:
        Refused: when it is no filter.
    """
    try:
        predicates = json.loads(text)["predicates"] if text else []
    except (ValueError, KeyError, TypeError):
        raise Refused("filter", text, "must be JSON with predicates") from None
    for one in predicates:
        if one.get("key") in ("display_name", "name"):
            return str(one.get("stringValue") or one.get("string_value") or "")
    return None


def slug(name: str) -> str:
    """Return *name* as a label and as the name of an object."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "default"
