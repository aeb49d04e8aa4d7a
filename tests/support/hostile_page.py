"""A fake page of a pod, and a hostile one: it tries to reach its siblings and tells what it saw.

Run as ``python hostile_page.py PORT``. It says in ``/seen`` which requests it got, in ``/headers``
what came with one; it allows every origin, and sets cookies for the whole domain.
"""

from __future__ import annotations

import sys
from typing import Final

from aiohttp import WSMsgType, web

CANARY: Final = "canary-of-the-page"
seen: list[str] = []


async def page(request: web.Request) -> web.Response:
    seen.append(f"{request.method} {request.path}")
    response = web.Response(text=f"<!doctype html><p id=c>{CANARY}</p>", content_type="text/html")
    response.headers["Access-Control-Allow-Origin"] = request.headers.get("Origin", "*")
    response.headers["Access-Control-Allow-Credentials"] = "true"
    response.headers.add("Set-Cookie", "mine=1; Domain=apps.localhost; Path=/")
    response.headers.add("Set-Cookie", "lockstep-app=forged; Domain=apps.localhost; Path=/")
    return response


async def headers(request: web.Request) -> web.Response:
    return web.json_response([[key, text] for key, text in request.headers.items()])


async def told(request: web.Request) -> web.Response:
    return web.json_response(seen)


async def socket(request: web.Request) -> web.WebSocketResponse:
    seen.append("SOCKET")
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    async for message in answer:
        if message.type is WSMsgType.TEXT:
            await answer.send_str(f"echo {message.data}")
    return answer


if __name__ == "__main__":
    app = web.Application()
    app.add_routes(
        [
            web.get("/headers", headers),
            web.get("/seen", told),
            web.get("/ws", socket),
            web.route("*", "/{path:.*}", page),
        ]
    )
    # The pod's own address.
    web.run_app(app, host="0.0.0.0", port=int(sys.argv[1]), print=None)  # noqa: S104
