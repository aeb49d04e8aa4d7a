"""Parameters whose values ConfigMaps hold: which those are, and a workflow with them in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.translation import Refused

TYPE_LABEL: Final = "workflows.argoproj.io/configmap-type"
"""A ConfigMap is read for parameters only where this says ``Parameter``, as Argo has it."""


def named(tree: Any) -> set[str]:
    """Return the names of the ConfigMaps that parameters in *tree* refer to."""
    return {one["configMapKeyRef"].get("name", "") for one in _sources(tree)}


def filled(tree: Any, held: Mapping[str, Mapping[str, str]], at: str = "spec") -> Any:
    """Return *tree* with the values of such parameters in their places.

    Raises:
        Refused: when a ConfigMap or its key is not there and there is no default.
    """
    if isinstance(tree, list):
        return [filled(one, held, f"{at}[{number}]") for number, one in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    return {
        key: [_parameter(one, held, f"{at}.parameters") for one in value]
        if key == "parameters" and isinstance(value, list)
        else filled(value, held, f"{at}.{key}")
        for key, value in tree.items()
    }


def _sources(tree: Any) -> Iterator[Json]:
    if isinstance(tree, list):
        for one in tree:
            yield from _sources(one)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key == "parameters" and isinstance(value, list):
                yield from (one["valueFrom"] for one in value if _refers(one))
            else:
                yield from _sources(value)


def _refers(one: Any) -> bool:
    source = one.get("valueFrom") if isinstance(one, dict) else None
    return isinstance(source, dict) and isinstance(source.get("configMapKeyRef"), dict)


def _parameter(one: Any, held: Mapping[str, Mapping[str, str]], at: str) -> Any:
    if not _refers(one):
        return one
    source = one["valueFrom"]
    reference = source["configMapKeyRef"]
    name, key = reference.get("name", ""), reference.get("key", "")
    value = held.get(name, {}).get(key, source.get("default", one.get("default")))
    if value is None:
        why = f"no ConfigMap of that name has {key} and the label {TYPE_LABEL}: Parameter"
        raise Refused(f"{at}.{one.get('name')}.valueFrom.configMapKeyRef", name, why)
    rest = {field: one[field] for field in one if field not in ("valueFrom", "default")}
    return {**rest, "value": value}
