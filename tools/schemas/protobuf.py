"""Reduce the Go types of Kubernetes to the field tables that read and write its protobuf.

Run it as ``python tools/schemas/protobuf.py`` after raising ``VERSION``; it needs a Go toolchain to
fetch the modules. The struct tags, not the ``.proto`` files, are read: they alone say which fields
are inlined in JSON, which are pointers (zero is a value), and which vanish when they are zero.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

from lockstep.apiserver.builtin import BUILTINS

VERSION = "v0.36.3"
DATA = Path(__file__).parents[2] / "src" / "lockstep" / "apiserver" / "data"
META = "meta.v1"
EXTENSIONS = "apiextensions.v1"
# Message types whose JSON is not made of their fields; the codec knows them by these codes.
SPECIAL = {
    "resource.Quantity": "quantity",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.Verbs": "strings",
    "meta.v1.FieldsV1": "json",
    "runtime.RawExtension": "json",
    f"{EXTENSIONS}.JSON": "json",
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": "schemaOrSchemas",
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": "schemaOrBool",
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": "schemaOrStrings",
    "intstr.IntOrString": "intstr",
}
SCALARS = {
    "string": "string",
    "bool": "bool",
    "float64": "double",
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint32", "uint64"), "int"),
    "[]byte": "bytes",
}
REVIEWS = ("authentication.k8s.io/v1", "authorization.k8s.io/v1", "autoscaling/v1")
PACKAGES = {
    META: ("k8s.io/apimachinery", "pkg/apis/meta/v1"),
    EXTENSIONS: ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    "apiregistration.v1": ("k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1"),
}
"""Packages that are not part of ``k8s.io/api``: their module and folder."""
# What the server answers with besides the kinds that it serves.
ANSWERS = {
    "v1 Status": f"{META}.Status",
    "v1 APIGroup": f"{META}.APIGroup",
    "v1 APIGroupList": f"{META}.APIGroupList",
    "v1 APIResourceList": f"{META}.APIResourceList",
    "v1 APIVersions": f"{META}.APIVersions",
    "meta.k8s.io/v1 PartialObjectMetadata": f"{META}.PartialObjectMetadata",
    "meta.k8s.io/v1 PartialObjectMetadataList": f"{META}.PartialObjectMetadataList",
    "apidiscovery.k8s.io/v2 APIGroupDiscoveryList": "apidiscovery.v2.APIGroupDiscoveryList",
    "apidiscovery.k8s.io/v2beta1 APIGroupDiscoveryList": (
        "apidiscovery.v2beta1.APIGroupDiscoveryList"
    ),
}

_STRUCT = re.compile(r"^type (\w+) struct ?\{(|\n.*?^)\}", re.M | re.S)
_ALIAS = re.compile(r"^type (\w+) (\[\]\w+|map\[\w+\][\w.]+|\w+)$", re.M)
_FIELD = re.compile(
    r"^\s+(?:(\w+)\s+)?([*\[\]\w.]+)\s+`json:\"([^\"]*)\" .*?protobuf:\"\w+,(\d+),", re.M
)
_IMPORT = re.compile(r"^(?:import)?\s*(?:(\w+) )?\"(k8s\.io/[^\"]+)\"$", re.M)

Field = list[str | int | bool]
Message = dict[str, Field]


class Types:
    """The struct and alias declarations of the packages read so far."""

    def __init__(self) -> None:
        self.structs: dict[str, Message] = {}
        self.aliases = {"types.UID": "string", "types.NodeName": "string"}
        self.raw: list[tuple[str, str, str, dict[str, str]]] = []

    def read(self, package: str, folder: Path) -> None:
        """Take in the declarations of one Go package."""
        for file in sorted({*folder.glob("*types*.go"), *folder.glob("group_version.go")}):
            text = file.read_text()
            imports = {
                alias or path.rsplit("/", 1)[1]: short(path)
                for alias, path in _IMPORT.findall(text)
            }
            for name, target in _ALIAS.findall(text):
                if f"{package}.{name}" in SPECIAL:
                    continue
                self.aliases[f"{package}.{name}"] = qualify(target, package, imports)
            for name, body in _STRUCT.findall(text):
                self.raw.append((package, name, body, imports))

    def resolve(self) -> dict[str, Message]:
        """Return the field table of every message."""
        for package, name, body, imports in self.raw:
            fields: Message = {}
            for _, type_, tag, number in _FIELD.findall(body):
                fields[number] = self.field(qualify(type_, package, imports), tag)
            self.structs[f"{package}.{name}"] = fields
        return self.structs

    def field(self, type_: str, tag: str) -> Field:
        """Return ``[json name, type, shape, drop zero]``; shape is one, many or map."""
        name, *options = tag.split(",")
        pointer = type_.startswith("*")
        base = self.aliases.get(type_.lstrip("*"), type_.lstrip("*"))
        shape = "one"
        if base.startswith("map["):
            shape, base = "map", base.partition("]")[2].lstrip("*")
        elif base.startswith("[]") and base != "[]byte":
            shape, base = "many", base[2:].lstrip("*")
        base = self.aliases.get(base, base)
        wrapped = base.startswith("[]") and base != "[]byte"
        code = "strings" if wrapped else SPECIAL.get(base) or SCALARS.get(base) or base
        return [name, code, shape, not pointer and "omitempty" in options]


def qualify(type_: str, package: str, imports: dict[str, str]) -> str:
    """Return the Go type expression with every type named by its package."""

    def one(match: re.Match[str]) -> str:
        alias, name = match.group(1), match.group(2)
        if alias:
            return f"{imports.get(alias[:-1], alias[:-1])}.{name}"
        return name if name in SCALARS or name in ("map", "byte") else f"{package}.{name}"

    return re.sub(r"(\w+\.)?(\w+)", one, type_)


def short(path: str) -> str:
    """Return ``core.v1`` for ``k8s.io/api/core/v1``, and the last step of unversioned paths."""
    *_, group, version = path.split("/")
    return f"{group}.{version}" if re.fullmatch(r"v\d\w*", version) else version


def module(name: str) -> Path:
    """Return the folder of a Go module, downloading it where needed."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{name}@{VERSION}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(json.loads(done.stdout)["Dir"])


def kinds() -> dict[str, str]:
    """Return the message of each API version and kind that is served, and of their lists."""
    found: dict[str, str] = {}
    for kind in BUILTINS:
        *_, group, version, name = kind.schema_name.split(".")
        for each in (name, f"{name}List"):
            found[f"{kind.api_version} {each}"] = f"{group}.{version}.{each}"
    return found


def read(types: Types, packages: set[str]) -> None:
    """Take in the Go packages of those names, such as ``core.v1``."""
    modules: dict[str, Path] = {}
    for package in sorted(packages):
        name, folder = PACKAGES.get(package, ("k8s.io/api", package.replace(".", "/")))
        if name not in modules:
            modules[name] = module(name)
        types.read(package, modules[name] / folder)


def main() -> int:
    """Fetch, reduce and write."""
    types, roots = Types(), kinds() | ANSWERS
    packages = {message.rpartition(".")[0] for message in roots.values()}
    read(types, packages | {"authentication.v1", "authorization.v1", "autoscaling.v1"})
    messages = types.resolve()
    for version in REVIEWS:
        package = version.replace(".k8s.io", "").replace("/", ".")
        for message in messages:
            if message.startswith(f"{package}.") and message.endswith(
                ("Review", "Scale", "TokenRequest")
            ):
                roots[f"{version} {message.rpartition('.')[2]}"] = message
    roots |= {"v1 Binding": "core.v1.Binding", "policy/v1 Eviction": "policy.v1.Eviction"}
    table = {"kinds": roots, "messages": closure(messages, set(roots.values()))}
    text = json.dumps(table, sort_keys=True, separators=(",", ":")).encode()
    target = DATA / "protobuf.json.gz"
    target.write_bytes(gzip.compress(text, 9, mtime=0))
    sys.stderr.write(
        f"{target}: {target.stat().st_size} bytes, {len(table['messages'])} messages\n"
    )
    return 0


def closure(messages: dict[str, Message], roots: set[str]) -> dict[str, Message]:
    """Return the messages reachable from *roots* and from what bodies and codes name."""
    kept: dict[str, Message] = {}
    todo = [*roots, f"{META}.DeleteOptions", f"{EXTENSIONS}.JSONSchemaProps"]
    while todo:
        name = todo.pop()
        if name in kept:
            continue
        kept[name] = messages[name]
        todo += [str(f[1]) for f in messages[name].values() if "." in str(f[1])]
    return kept


if __name__ == "__main__":
    sys.exit(main())
