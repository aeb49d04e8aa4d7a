"""The OpenAPI v3 answers: an index, and one document for each group and version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from lockstep.apiserver.openapi.definition import Definition
from lockstep.apiserver.openapi.document import document


class OpenApi:
    """The answers for what is served at one time.

    Documents are made when they are first asked for; those of the built-in groups are shared by
    all instances, so a new instance whenever a CRD changes costs only that CRD's document.
    """

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._groups: dict[str, list[Definition]] = {}
        for definition in definitions:
            kind = definition.kind
            prefix = f"apis/{kind.group}" if kind.group else "api"
            self._groups.setdefault(f"{prefix}/{kind.version}", []).append(definition)
        self._own: dict[str, tuple[bytes, str]] = {}

    def index(self) -> bytes:
        """Return the answer to ``/openapi/v3``."""
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._made(path)[1]}"}
            for path in sorted(self._groups)
        }
        return msgspec.json.encode({"paths": paths})

    def document(self, path: str) -> tuple[bytes, str] | None:
        """Return the document of a *path* such as ``apis/apps/v1``, and its hash as an ETag.

        Nothing where that is not served.
        """
        return self._made(path) if path in self._groups else None

    def _made(self, path: str) -> tuple[bytes, str]:
        definitions = self._groups[path]
        if all(d.schema is None for d in definitions):
            return _builtin(tuple(definitions))
        if path not in self._own:
            self._own[path] = _encode(definitions)
        return self._own[path]


@lru_cache(maxsize=64)
def _builtin(definitions: tuple[Definition, ...]) -> tuple[bytes, str]:
    return _encode(definitions)


def _encode(definitions: Sequence[Definition]) -> tuple[bytes, str]:
    encoded = msgspec.json.encode(document(definitions))
    return encoded, hashlib.sha512(encoded).hexdigest().upper()
