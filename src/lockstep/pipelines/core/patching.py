"""Changes to a pod's spec as ``kubectl patch`` makes them: lists of named things by their names."""

from __future__ import annotations

from typing import Any, Final

from lockstep.pipelines.core.values import BadExpression

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""By list: what its elements are known by. Other lists are replaced."""


def read(text: str) -> dict[str, Any]:
    """Return the change that *text* is, YAML or JSON.

    Raises:
        BadExpression: when it is no object.
    """
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        words = str(error).splitlines()[0]
        raise BadExpression(f"pod.patch: {text[:100]!r} is no YAML: {words}") from error
    if not isinstance(found, dict):
        raise BadExpression(f"pod.patch: {text[:100]!r} is no object")
    return found


def merged(tree: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return *tree* with *change* laid over it; what is null in a change is taken away."""
    found = dict(tree)
    for name, new in change.items():
        old = found.get(name)
        if new is None:
            found.pop(name, None)
        elif isinstance(new, dict):
            found[name] = merged(old if isinstance(old, dict) else {}, new)
        elif isinstance(new, list) and name in _KEYS:
            found[name] = _listed(old if isinstance(old, list) else [], new, _KEYS[name])
        else:
            found[name] = new
    return found


def _listed(old: list[Any], new: list[Any], key: str) -> list[Any]:
    found = list(old)
    for change in new:
        if not isinstance(change, dict) or key not in change:
            raise BadExpression(f"pod.patch: {str(change)[:100]!r} needs {key}")
        place = next((n for n, one in enumerate(found) if one.get(key) == change[key]), None)
        if change.get("$patch") == "delete":
            found = [one for one in found if one.get(key) != change[key]]
        elif place is None:
            found.append(merged({}, change))
        else:
            found[place] = merged(found[place], change)
    return found
