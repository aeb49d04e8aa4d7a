"""Finds out which fields Kubernetes leaves out, or writes, when they hold their zero value.

``python -m tools.schemas.zeros MODULES`` reads the Go sources of the API types in a module cache
(``go env GOMODCACHE``) and writes ``src/lockstep/apiserver/data/zeros.json``: by component, the
names of the fields that vanish when they are empty, zero or false, and what is written in those
that are there although nobody set them; and the order of all, in which messages show them. The
OpenAPI documents say nothing of this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "src/lockstep/apiserver/data/zeros.json"
VERSION: Final = "v0.36.3"
PACKAGES: Final = {
    "api@{}/": "io.k8s.api.",
    "apimachinery@{}/pkg/apis/meta/": "io.k8s.apimachinery.pkg.apis.meta.",
    "apiextensions-apiserver@{}/pkg/apis/apiextensions/": (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions."
    ),
    "kube-aggregator@{}/pkg/apis/apiregistration/": (
        "io.k8s.kube-aggregator.pkg.apis.apiregistration."
    ),
}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) (\w+)$", re.M)
_ORDERED = re.compile(r'^\t(?:\w+\s+)?([*\w.\[\]]+)\s+`json:"(\w*)((?:,\w+)*)"', re.M)
_FIELD = re.compile(r'^\t\w+\s+([\w.\[\]]+)\s+`json:"(\w+)((?:,\w+)*)"', re.M)
_ZEROES: Final = {"string": "", "bool": False, "int32": 0, "int64": 0, "int": 0, "float64": 0}
_STRINGS: Final = frozenset({"types.UID", "v1.ConditionStatus", "metav1.ConditionStatus"})
_TIMES: Final = ("metav1.Time", "metav1.MicroTime", "Time", "MicroTime")


def main(modules: Path) -> None:
    """Write the table from the sources below *modules*."""
    components = {
        component.removeprefix("io.k8s.")
        for component in _served(ROOT / "src/lockstep/apiserver/data/structure.json.gz")
    }
    table = {
        name: found
        for name, found in sorted(_all(modules / "k8s.io"))
        if any(found.values()) and name in components
    }
    TARGET.write_text("{\n" + ",\n".join(_lines(table)) + "\n}\n")


def _lines(table: dict[str, Any]) -> Iterator[str]:
    for name, found in table.items():
        yield f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}"


def _served(path: Path) -> set[str]:
    import gzip

    return set(json.loads(gzip.decompress(path.read_bytes())))


def _all(modules: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, prefix in PACKAGES.items():
        base = modules / place.format(VERSION)
        for source in sorted(base.glob("**/types*.go")):
            package = str(source.parent.relative_to(base)).replace("/", ".")
            text = source.read_text()
            named = {name: of for name, of in _NAMED.findall(text) if of in _ZEROES}
            for struct, body in _STRUCT.findall(text):
                component = f"{prefix}{package}.{struct}".removeprefix("io.k8s.")
                yield component, _read(body, named)


def _read(body: str, named: dict[str, str]) -> dict[str, Any]:
    dropped: list[str] = []
    written: dict[str, Any] = {}
    for type_, name, options in _FIELD.findall(body):
        basic = "string" if type_ in _STRINGS else named.get(type_, type_)
        if type_ in _TIMES and "omitzero" not in options:
            written[name] = None
        elif type_.startswith(("[]", "map[")):
            if not options:
                written[name] = None
        elif basic in _ZEROES and "omitempty" in options:
            dropped.append(name)
        elif basic in _ZEROES:
            written[name] = _ZEROES[basic]
    return {"dropped": dropped, "written": written, "order": list(_order(body))}


def _order(body: str) -> Iterator[str]:
    for type_, name, options in _ORDERED.findall(body):
        if type_.endswith("TypeMeta") and "inline" in options:
            yield from ("kind", "apiVersion")
        elif name:
            yield name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
