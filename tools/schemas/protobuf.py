"""Reduce the Go types of Kubernetes to the field tables that decode its protobuf bodies.

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
# Message types whose JSON is not an object; the decoder knows them by these codes.
SPECIAL = {
    "resource.Quantity": "quantity",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "json",
    "runtime.RawExtension": "json",
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

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_ALIAS = re.compile(r"^type (\w+) (\[\]\w+|map\[\w+\][\w.]+|\w+)$", re.M)
_FIELD = re.compile(
    r"^\s+(?:(\w+)\s+)?([*\[\]\w.]+)\s+`json:\"([^\"]*)\" .*?protobuf:\"\w+,(\d+),", re.M
)
_IMPORT = re.compile(r"^\s*(?:(\w+) )?\"(k8s\.io/[^\"]+)\"$", re.M)

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
        for file in sorted(folder.glob("*types*.go")):
            text = file.read_text()
            imports = {
                alias or path.rsplit("/", 1)[1]: short(path)
                for alias, path in _IMPORT.findall(text)
            }
            for name, target in _ALIAS.findall(text):
                self.aliases[f"{package}.{name}"] = qualify(target, package, imports)
            for name, body in _STRUCT.findall(text):
                self.raw.append((package, name, body, imports))

    def resolve(self) -> dict[str, Message]:
        """Return the field table of every message."""
        for package, name, body, imports in self.raw:
            fields: Message = {}
            for _, type_, tag, number in _FIELD.findall(body):
                fields[number] = self.field(qualify(type_, package, imports), tag)
            if fields:
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
    """Return the message of each API version and kind that is served."""
    found: dict[str, str] = {}
    for kind in BUILTINS:
        head, _, name = kind.schema_name.rpartition(".")
        if head.startswith("io.k8s.api."):
            version = f"{kind.group}/{kind.version}" if kind.group else kind.version
            found[f"{version} {name}"] = f"{head.removeprefix('io.k8s.api.')}.{name}"
    return found


def main() -> int:
    """Fetch, reduce and write."""
    types, api = Types(), module("k8s.io/api")
    types.read(META, module("k8s.io/apimachinery") / "pkg" / "apis" / "meta" / "v1")
    packages = {message.rpartition(".")[0] for message in kinds().values()}
    packages |= {"authentication.v1", "authorization.v1", "autoscaling.v1"}
    for package in sorted(packages):
        types.read(package, api / package.replace(".", "/"))
    messages, roots = types.resolve(), kinds()
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
    """Return the messages reachable from *roots* and from DeleteOptions."""
    kept: dict[str, Message] = {}
    todo = [*roots, f"{META}.DeleteOptions"]
    while todo:
        name = todo.pop()
        if name in kept:
            continue
        kept[name] = messages[name]
        todo += [str(f[1]) for f in messages[name].values() if "." in str(f[1])]
    return kept


if __name__ == "__main__":
    sys.exit(main())
