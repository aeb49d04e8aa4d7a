"""What to simulate: ``64x8,nodes-per-leaf=8`` or a file of node groups, read and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lockstep.api import quantity
from lockstep.api.label_syntax import subdomain_problems, value_problems

MIB = 1 << 20
MAX_NODES = 100_000
MAX_DEVICES = 64
SMALL_FLEET = 256
EXAMPLE = "64x8,nodes-per-leaf=8,leaves-per-spine=4"


class SpecError(ValueError):
    """A specification is wrong; the message names the field, what was given, and the remedy."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    A leaf switch connects ``nodes_per_leaf`` of them, a spine ``leaves_per_spine`` leaves.
    ``nvlink`` is how many GPUs share an NVLink domain inside a node, 0 for none at all. NICs are
    spread evenly over the PCIe roots of the GPUs.
    """

    nodes: int
    gpus: int
    nodes_per_leaf: int
    leaves_per_spine: int
    cpus: int
    memory: int
    """Bytes."""
    gpu_model: str
    gpu_memory: int
    """MiB of one GPU."""
    nvlink: int
    nics: int
    numa: int
    """NUMA nodes, over which CPUs, memory and devices are spread evenly."""
    gpus_per_root: int
    """GPUs under one PCIe root."""
    name_prefix: str


def parse(spec: str) -> list[NodeGroup]:
    """Return the groups of nodes that *spec* describes.

    Raises:
        SpecError: when it is not a specification, or a value is out of range.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml", ".json"):
        return _from_file(path)
    size, *options = spec.split(",")
    match = re.fullmatch(r"(\d+)x(\d+)", size.strip())
    if match is None:
        raise SpecError(
            f"{size!r} is not NODESxGPUS; write for example {EXAMPLE}, "
            "or name a .yaml or .json file with a list of node groups"
        )
    given: dict[str, Any] = {"nodes": match[1], "gpus": match[2]}
    for option in options:
        name, equals, value = option.strip().partition("=")
        if not equals or not value:
            raise SpecError(f"{option!r} is not OPTION=VALUE; write for example nodes-per-leaf=8")
        if name in given:
            raise SpecError(f"{name} is given twice; leave one out")
        given[name] = value
    return [_group(given, "")]


def _from_file(path: Path) -> list[NodeGroup]:
    document = _read(path)
    if isinstance(document, dict):
        document = document.get("groups")
    if not isinstance(document, list) or not document:
        raise SpecError(f"{path} must hold a list of node groups, such as [{{nodes: 64, gpus: 8}}]")
    groups = []
    for number, entry in enumerate(document):
        where = f"{path}: groups[{number}]"
        if not isinstance(entry, dict):
            raise SpecError(f"{where} is {entry!r}; write a mapping such as {{nodes: 64, gpus: 8}}")
        groups.append(_group(entry, f"{where}."))
    total = sum(group.nodes for group in groups)
    if total > MAX_NODES:
        raise SpecError(f"{path} has {total} nodes in all; at most {MAX_NODES} can be simulated")
    prefixes = [group.name_prefix for group in groups]
    if len(set(prefixes)) < len(prefixes):
        # Nodes of two groups must not share names, so prefixes that the user did not choose get a
        # number.
        chosen = [entry.get("name-prefix") for entry in document]
        for i, group in enumerate(groups):
            if chosen[i] is None:
                groups[i] = replace(group, name_prefix=f"{group.name_prefix}{i}")
        _distinct(path, groups)
    return groups


def _distinct(path: Path, groups: list[NodeGroup]) -> None:
    seen: set[str] = set()
    for number, group in enumerate(groups):
        if group.name_prefix in seen:
            raise SpecError(
                f"{path}: groups[{number}].name-prefix {group.name_prefix!r} is taken by another "
                "group; choose another one"
            )
        seen.add(group.name_prefix)


def _read(path: Path) -> Any:
    try:
        text = path.read_text()
    except OSError as error:
        raise SpecError(f"the file of node groups cannot be read: {error}") from error
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise SpecError(f"{path} is not JSON: {error}") from None
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecError(f"{path} is not YAML: {error}") from None


def _group(given: dict[str, Any], where: str) -> NodeGroup:
    known = [field.name.replace("_", "-") for field in fields(NodeGroup)]
    for name in given:
        if name not in known:
            raise SpecError(f"{where}{name} is not an option; there are {', '.join(known)}")

    def read(name: str, reader: Callable[[str, Any], Any], default: Any) -> Any:
        return reader(f"{where}{name}", given.get(name, default))

    nodes = read("nodes", _count(1, MAX_NODES), None)
    gpus = read("gpus", _count(0, MAX_DEVICES), 0)
    small = nodes <= SMALL_FLEET
    return NodeGroup(
        nodes=nodes,
        gpus=gpus,
        nodes_per_leaf=read("nodes-per-leaf", _count(1, MAX_NODES), 8 if small else 32),
        leaves_per_spine=read("leaves-per-spine", _count(1, MAX_NODES), 4 if small else 8),
        cpus=read("cpus", _count(1, 4096), 12 * gpus or 32),
        memory=read("memory", _bytes, f"{256 * gpus or 128}Gi"),
        gpu_model=read("gpu-model", _label_value, "NVIDIA-H100-80GB-HBM3"),
        gpu_memory=read("gpu-memory", _bytes, "80Gi") // MIB,
        nvlink=read("nvlink", _count(0, MAX_DEVICES), gpus),
        nics=read("nics", _count(0, MAX_DEVICES), gpus),
        numa=read("numa", _count(1, 16), 2),
        gpus_per_root=read("gpus-per-root", _count(1, MAX_DEVICES), 2),
        name_prefix=read("name-prefix", _prefix, "sim"),
    )


def _count(least: int, most: int) -> Callable[[str, Any], int]:
    def read(field: str, value: Any) -> int:
        text = "nothing" if value is None else repr(value)
        whole = isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
        if isinstance(value, bool) or not whole or not least <= int(value) <= most:
            raise SpecError(f"{field} is {text}; write a whole number from {least} to {most}")
        return int(value)

    return read


def _bytes(field: str, value: Any) -> int:
    try:
        size = quantity.to_int(value)
    except ValueError:
        raise SpecError(f"{field} is {value!r}; write a size such as 80Gi") from None
    if size < MIB:
        raise SpecError(f"{field} is {value!r}, less than a MiB; write a size such as 80Gi")
    return size


def _label_value(field: str, value: Any) -> str:
    problems = value_problems(str(value))
    if problems or not value:
        raise SpecError(f"{field} is {value!r}; it becomes a label's value: {'; '.join(problems)}")
    return str(value)


def _prefix(field: str, value: Any) -> str:
    text = str(value)
    if subdomain_problems(text) or len(text) > 40:
        raise SpecError(
            f"{field} is {value!r}; write at most 40 lower-case letters, digits and '-'"
        )
    return text
