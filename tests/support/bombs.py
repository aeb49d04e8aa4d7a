"""Requests that are small and ask for much: each is to be refused, and to delay no other."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOMBS = "/apis/test.dev/v1/namespaces/default/bombs"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
YAML = "application/yaml"
JSON = "application/json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Bomb:
    """A request, and what the refusal says."""

    path: str
    body: bytes
    words: str
    code: int
    content_type: str = JSON
    method: str = "POST"


def crd() -> dict[str, Any]:
    """Return a definition whose patterns and rules are harmless until the wrong value comes."""
    nested = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"
    spec = {
        "pattern": {"type": "string", "pattern": "^(a+)+$"},
        "states": {"type": "string", "pattern": "^[ab]*a[ab]{900}$"},
        "matched": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self.matches('^[ab]*a[ab]{900}$')"}],
        },
        "numbers": {
            "type": "array",
            "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": nested}],
        },
        "grown": {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "size(self" + ".replace('a', self)" * 6 + ") < 10"}
            ],
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "bombs", "singular": "bomb", "kind": "Bomb", "listKind": "BombList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bombs.test.dev"},
        "spec": {"group": "test.dev", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def bomb(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "test.dev/v1", "kind": "Bomb", "metadata": metadata, "spec": spec}


def _body(**spec: Any) -> bytes:
    return json.dumps(bomb("refused", **spec)).encode()


def _aliases() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 10):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines).encode()


def _copies(count: int) -> bytes:
    first = {"op": "add", "path": "/spec/open/a", "value": {"x": "y" * 400}}
    copies = [
        {"op": "copy", "from": "/spec/open", "path": f"/spec/open/a{i}"} for i in range(count)
    ]
    return json.dumps([first, *copies]).encode()


_MIXED = "".join(random.Random(1).choices("ab", k=1_000_000))  # noqa: S311  # no secret
PATCHED = f"{BOMBS}/target"
TABLE = {
    "YAML aliases": Bomb(REVIEWS, _aliases(), "excessive aliasing", 400, YAML),
    "YAML nesting": Bomb(REVIEWS, b"[" * 200_000, "max depth", 400, YAML),
    "YAML that contains itself": Bomb(REVIEWS, b"a: &a [*a]", "contains itself", 400, YAML),
    "YAML of base 60": Bomb(REVIEWS, b"kind: 1" + b":1" * 400_000, "no kind", 400, YAML),
    "JSON nesting": Bomb(REVIEWS, b'{"a":' * 100_000, "max depth", 400),
    "JSON that is broken": Bomb(REVIEWS, b'{"a":[' + b"1," * 1_400_000 + b"}", "invalid JSON", 400),
    "many values": Bomb(BOMBS, _body(open={"list": [0] * 500_000}), "50000 values", 413),
    "JSON patch copies": Bomb(
        PATCHED, _copies(22), "accumulated size increase of copy", 413, JSON_PATCH, "PATCH"
    ),
    "pattern": Bomb(BOMBS, _body(pattern="a" * 40 + "!"), "should match", 422),
    "pattern of many states": Bomb(BOMBS, _body(states=_MIXED), "cost exceeds limit", 422),
    "CEL loops": Bomb(BOMBS, _body(numbers=list(range(1000))), "cost exceeds limit", 422),
    "CEL growth": Bomb(BOMBS, _body(grown="a" * 2000), "longer than", 422),
    "CEL pattern": Bomb(BOMBS, _body(matched=_MIXED), "cost exceeds limit", 422),
}
