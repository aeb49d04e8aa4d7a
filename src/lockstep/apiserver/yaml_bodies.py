"""YAML as Kubernetes reads it: YAML 1.1 turned into JSON."""

from __future__ import annotations

import re
from typing import Any

import yaml

_BOOLEAN = re.compile(
    r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)


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


def load(body: bytes) -> Any:
    """Return the value of the first document in *body*, as JSON has it.

    Raises:
        NotYaml: when it is none.
    """
    try:
        return _with_text_keys(yaml.load(body, _Loader))  # noqa: S506  # a safe loader, see above
    except yaml.MarkedYAMLError as error:
        raise NotYaml(_message(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NotYaml(f"yaml: {error}") from None


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
