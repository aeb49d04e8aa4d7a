"""Reduce the OpenAPI documents of Kubernetes to what the embedded API server needs.

Run it as ``python tools/schemas/reduce.py`` after raising ``VERSION``; it needs a Go toolchain to
fetch the module that holds the documents, and writes the files under
``src/lockstep/apiserver/data/``. The same documents always give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lockstep.apiserver.builtin import BUILTINS

Json = dict[str, Any]

VERSION = "v1.36.3"
DATA = Path(__file__).parents[2] / "src" / "lockstep" / "apiserver" / "data"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
# What is answered beside the stored kinds: subresources, reviews, and the API's own envelope.
EXTRA = (
    f"{_META}.APIGroup",
    f"{_META}.APIGroupList",
    f"{_META}.APIResourceList",
    f"{_META}.APIVersions",
    f"{_META}.DeleteOptions",
    f"{_META}.Patch",
    f"{_META}.Status",
    f"{_META}.WatchEvent",
    "io.k8s.api.authentication.v1.SelfSubjectReview",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.authentication.v1.TokenReview",
    "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "io.k8s.api.authorization.v1.SubjectAccessReview",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.core.v1.Binding",
    "io.k8s.api.policy.v1.Eviction",
)
_REF = "#/components/schemas/"


def main() -> int:
    """Fetch, reduce, write, and say how large the result is."""
    components = read_components(fetch(VERSION))
    kept = closure(components, roots())
    write("structure.json.gz", {name: without_descriptions(kept[name]) for name in sorted(kept)})
    write("descriptions.json.gz", {name: descriptions(kept[name]) for name in sorted(kept)})
    return 0


def fetch(version: str) -> Path:
    """Return the folder of the module's documents, downloading the module where needed.

    Raises:
        subprocess.CalledProcessError: when the Go toolchain cannot get the module.
    """
    module = f"k8s.io/kubernetes@{version}"
    shown = subprocess.run(
        ["go", "mod", "download", "-json", module], check=True, capture_output=True, text=True
    )
    return Path(json.loads(shown.stdout)["Dir"]) / "api" / "openapi-spec" / "v3"


def read_components(folder: Path) -> dict[str, Json]:
    """Return the schemas of all documents in *folder*, by name.

    Raises:
        ValueError: when two documents give one name to different schemas.
    """
    components: dict[str, Json] = {}
    for path in sorted(folder.glob("api*_openapi.json")):
        document = json.loads(path.read_bytes())
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            # The API's own envelope is listed under every group that a document speaks of.
            if name.startswith(_META):
                schema.pop("x-kubernetes-group-version-kind", None)
            if components.setdefault(name, schema) != schema:
                raise ValueError(f"{name} in {path.name} differs from an earlier document's")
    return components


def roots() -> list[str]:
    """Return the names of the schemas that must be there."""
    stored = [kind.schema_name for kind in BUILTINS]
    return [*stored, *(f"{name}List" for name in stored), *EXTRA]


def closure(components: dict[str, Json], names: list[str]) -> dict[str, Json]:
    """Return the schemas called *names* and all that they refer to.

    Raises:
        KeyError: when there is no schema of that name.
    """
    kept: dict[str, Json] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = components[name]
            waiting.extend(references(components[name]))
    return kept


def references(node: Any) -> list[str]:
    """Return the names of the schemas that *node* refers to."""
    if isinstance(node, list):
        return [name for item in node for name in references(item)]
    if not isinstance(node, dict):
        return []
    found = [name for value in node.values() for name in references(value)]
    ref = node.get("$ref")
    return [*found, ref.removeprefix(_REF)] if isinstance(ref, str) else found


def without_descriptions(schema: Json) -> Json:
    """Return *schema* without the prose of itself and of its properties."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in schema:
        bare["properties"] = {
            name: {key: value for key, value in part.items() if key != "description"}
            for name, part in schema["properties"].items()
        }
    return bare


def descriptions(schema: Json) -> dict[str, str]:
    """Return the prose of *schema* under an empty name, and that of its properties under theirs."""
    prose = {"": schema.get("description", "")}
    for name, part in schema.get("properties", {}).items():
        prose[name] = part.get("description", "")
    return {name: text for name, text in prose.items() if text}


def write(name: str, content: Json) -> None:
    """Write *content* as compressed JSON, without a time stamp."""
    plain = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    packed = gzip.compress(plain.encode(), compresslevel=9, mtime=0)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / name).write_bytes(packed)
    sys.stdout.write(f"{name}: {len(content)} schemas, {len(plain)} -> {len(packed)} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
