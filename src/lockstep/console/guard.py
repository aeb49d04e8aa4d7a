"""What every request must show before it is looked at, and what every answer carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MARK: Final = "X-Lockstep-Console"
"""A header that a page of another origin cannot send without being asked for."""
SAFE: Final = ("GET", "HEAD")
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def check(request: web.Request, origins: frozenset[str]) -> str:
    """Return why a request is refused; empty where it may go on.

    *origins* are those at which the console is reached, as ``http://127.0.0.1:7490``. A name that
    leads here by DNS rebinding is none of them.
    """
    hosts = {origin.partition("://")[2] for origin in origins}
    if request.headers.get("Host", "") not in hosts:
        return "Host: the console is not reached by this name; start it with --origin"
    origin = request.headers.get("Origin")
    if origin is not None and origin not in origins:
        return "Origin: requests of other pages are refused"
    if request.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site"):
        allowed = request.method in SAFE and not request.path.startswith("/api/")
        if not allowed:
            return "Sec-Fetch-Site: requests of other pages are refused"
    if request.method not in SAFE and request.headers.get(MARK) != "1":
        return f"{MARK}: the header is missing"
    return ""


def changes(request: web.Request) -> bool:
    """Tell whether a request changes an object: for who did what."""
    return request.method not in SAFE and request.path.startswith(
        ("/api/objects", "/api/jobs", "/api/drain", "/api/apps")
    )


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add what every answer of the console carries; those of apps stay as they are."""
    if request.get("app"):
        return
    response.headers.update(HEADERS)
    kept = "no-store" if request.path.startswith("/api/") else "no-cache"
    response.headers.setdefault("Cache-Control", kept)
    response.headers.pop("Server", None)
