"""YAML as Kubernetes reads it: YAML 1.1 turned into JSON."""

from __future__ import annotations

import re
from typing import Any

import yaml

_BOOLEAN = re.compile(
    r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)


MAX_DEPTH = 200
_LONGEST_NUMBER = 300
MAX_REPEATED = 100_000
"""Values and characters that the aliases of one document may stand for."""


class NotYaml(Exception):
    """A text that is not YAML; the message is that of Kubernetes' parser."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe; times stay text, as they are in JSON, and single letters may be booleans."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":bool"))]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, list("yYnNtTfFoO"))
_Loader.add_constructor(
    "tag:yaml.org,2002:bool",
    lambda loader, node: loader.construct_scalar(node).lower() in ("y", "yes", "true", "on"),
)


def _whole_number(loader: Any, node: Any) -> Any:
    """Return a number as Go reads it: without base 60, and beyond 64 bits a float."""
    text = loader.construct_scalar(node)
    if ":" in text or len(text) > _LONGEST_NUMBER:
        return text
    value: int = yaml.constructor.SafeConstructor.construct_yaml_int(loader, node)
    return value if -(2**63) <= value < 2**64 else float(value)


def _number(loader: Any, node: Any) -> Any:
    text = loader.construct_scalar(node)
    if ":" in text:
        return text
    return yaml.constructor.SafeConstructor.construct_yaml_float(loader, node)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


def load(body: bytes) -> Any:
    """Return the value of the first document in *body*, as JSON has it.

    Raises:
        NotYaml: when it is none, nested too deeply, or much larger than it is written.
    """
    try:
        _require_plain(body)
        return _with_text_keys(yaml.load(body, _Loader))  # noqa: S506  # a safe loader, see above
    except yaml.MarkedYAMLError as error:
        raise NotYaml(_message(error)) from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise NotYaml(f"yaml: {error}") from None


def repeated_keys(body: bytes) -> list[str]:
    """Return where mappings of *body*, which is known to be YAML, have a key again."""
    found: list[str] = []
    left: list[yaml.Node | None] = [yaml.compose(body, _Loader)]
    looked_at: set[int] = set()
    while left:
        node = left.pop()
        if node is None or id(node) in looked_at:
            continue
        looked_at.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in keys:
                    line = value.start_mark.line + 1
                    found.append(f'line {line}: key "{key.value}" already set in map')
                keys.add(key.value if isinstance(key, yaml.ScalarNode) else "")
                left.append(value)
        elif isinstance(node, yaml.SequenceNode):
            left += node.value
    return found


def _require_plain(body: bytes) -> None:
    """Require that what *body* stands for is about as large as *body* itself.

    Each node counts once where it is written, and again wherever an alias repeats it. The parser
    of events needs no stack, where that of values would run out of it.
    """
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    size = repeated = 0
    for event in yaml.parse(body, _Loader):
        if isinstance(event, yaml.AliasEvent):
            again = sizes.get(event.anchor or "", 0)
            size, repeated = size + again, repeated + again
            if any(anchor == event.anchor for anchor, _ in open_):
                raise NotYaml(f"yaml: anchor '{event.anchor}' value contains itself")
            if repeated > MAX_REPEATED:
                raise NotYaml(
                    "yaml: document contains excessive aliasing: its aliases repeat more than "
                    f"{MAX_REPEATED} values and characters"
                )
        elif isinstance(event, yaml.ScalarEvent):
            size += 1 + len(event.value)
            if event.anchor:
                sizes[event.anchor] = 1 + len(event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(open_) >= MAX_DEPTH:
                raise NotYaml(f"yaml: exceeded max depth of {MAX_DEPTH}")
            open_.append((event.anchor, size))
            size += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = size - before
        elif isinstance(event, yaml.DocumentEndEvent):
            return


def _message(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    line = 0 if mark is None else mark.line + isinstance(error, yaml.scanner.ScannerError)
    return f"yaml: line {line}: {error.problem}" if line else f"yaml: {error.problem}"


def _with_text_keys(value: Any) -> Any:
    """Return *value* with every key a text: YAML reads some as something else."""
    if isinstance(value, dict):
        return {_text_key(key): _with_text_keys(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_text_keys(one) for one in value]
    return value


def _text_key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
