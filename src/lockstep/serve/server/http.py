"""What the server answers over HTTP: predictions in both protocols, and its repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lockstep import __version__
from lockstep.http.message import Request, Response
from lockstep.http.requests import Bounds
from lockstep.serve.server import v1, v2
from lockstep.serve.server.figures import page
from lockstep.serve.server.inputs import Unfit
from lockstep.serve.server.repository import Failed, Repository, Unknown

BOUNDS: Final = Bounds(body=64 << 20)
_V1: Final = re.compile(r"/v1/models/([^/:]+)(:predict)?")
_V2: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/[^/]+)?(/ready|/infer)?")
_REPOSITORY: Final = re.compile(r"/v2/repository/models/([^/]+)/(load|unload)")
_BINARY: Final = "inference-header-content-length"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Change(msgspec.Struct):
    """What a call of the repository says."""

    parameters: dict[str, Any] = {}


class Api:
    """Answers requests from one *repository*."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def answer(self, request: Request) -> Response:
        """Return the answer to *request*, once the model has one."""
        try:
            if request.method == "POST":
                return await self._post(request)
            if request.method in ("GET", "HEAD"):
                if request.path == "/metrics":
                    return Response(200, page(self._repository), "text/plain; version=0.0.4")
                return _json(200, self._get(request.path))
            raise _nothing_at(request.path)
        except Unknown as error:
            return _json(404, {"error": str(error)})
        except (Unfit, Failed) as error:
            return _json(400, {"error": str(error)})
        except Refused as error:
            return _json(error.status, {"error": str(error)})

    async def _post(self, request: Request) -> Response:
        path = request.path
        if (match := _V1.fullmatch(path)) and match[2]:
            model = self._repository.get(match[1])
            found = await self._repository.predict(model, v1.inputs(request.body))
            return _shaped(lambda: (v1.answer(found), None))
        if (match := _V2.fullmatch(path)) and match[2] == "/infer":
            model = self._repository.get(match[1])
            wish, rows = v2.decode(request.body, _binary_length(request))
            found = await self._repository.predict(model, rows)
            return _shaped(lambda: v2.answer(model, wish, found))
        if match := _REPOSITORY.fullmatch(path):
            name, verb = match.groups()
            if verb == "load":
                await self._repository.load(name, _stated_uri(request.body))
            else:
                self._repository.unload(name)
            return _json(200, {"name": name, verb: True})
        if path == "/v2/repository/index":
            return _json(200, self._repository.index())
        raise _nothing_at(path)

    def _get(self, path: str) -> dict[str, Any]:
        """Return what is known under *path*.

        Raises:
            Refused: when nothing is, or the models are not loaded yet.
        """
        names = self._repository.names
        if path in ("/", "/v2/health/live"):
            return {"live": True, "status": "alive"}
        if path == "/v2/health/ready":
            if not names and not self._repository.settled:
                raise Refused(503, "no model is loaded yet")
            return {"ready": True}
        if path == "/v2":
            return {
                "name": "lockstep",
                "version": __version__,
                "extensions": ["binary_tensor_data", "model_repository"],
            }
        if path in ("/v1/models", "/v2/models"):
            return {"models": names}
        settled = self._repository.settled
        if not names and not settled and path.startswith(("/v1/", "/v2/")):
            raise Refused(503, "the model is not loaded yet")
        if match := _V1.fullmatch(path):
            return {"name": self._repository.get(match[1]).name, "ready": True}
        if match := _V2.fullmatch(path):
            model = self._repository.get(match[1])
            return {"name": model.name, "ready": True} if match[2] else v2.metadata(model)
        raise _nothing_at(path)


def _nothing_at(path: str) -> Refused:
    there = "POST to /v1/models/NAME:predict or /v2/models/NAME/infer"
    return Refused(404, f"nothing is at {path}; {there}")


def _binary_length(request: Request) -> int | None:
    """Return how long the JSON is that binary tensors follow; None where all is JSON."""
    given = request.headers.get(_BINARY)
    if given is not None and not given.isdigit():
        raise Unfit("Inference-Header-Content-Length: a number is needed")
    return None if given is None else int(given)


def _shaped(shape: Callable[[], tuple[bytes, int | None]]) -> Response:
    """Return what a model found in the shape of its protocol: JSON, or with tensors after it."""
    try:
        body, json_length = shape()
    except (Unfit, ValueError, TypeError) as cause:
        raise Unfit(f"the answer cannot be shown: {cause}") from cause
    if json_length is None:
        return Response(200, body)
    head = ("Inference-Header-Content-Length", str(json_length))
    return Response(200, body, "application/octet-stream", [head])


def _stated_uri(body: bytes) -> str:
    """Return the URI that a call of the repository names in its parameters; empty for none.

    Raises:
        Unfit: when the body is no request of that kind.
    """
    if not body:
        return ""
    try:
        told = msgspec.json.decode(body, type=_Change)
    except msgspec.DecodeError as error:
        raise Unfit(f"malformed request: {error}") from error
    return str(told.parameters.get("storage_uri", ""))


def _json(status: int, told: Any) -> Response:
    return Response(status, msgspec.json.encode(told))
